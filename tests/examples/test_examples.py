"""Each example is run as a newcomer runs it, and prints what its text promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE = 120  # seconds; a watchdog for a hung example, far above what one needs

PRINTED = {
    "first_agent": "succeeded\nIt stays sunny in Oslo.\n",
    "parallel_tools": (
        "returned  Bergen\nreturned  Oslo\nreturned  Tromsø\n"
        "result    Tromsø\nresult    Bergen\nresult    Oslo\n"
        "It is cool in all three.\n"
    ),
    "stopping": (
        "cancelled (heard enough): Once upon a time there was ...\n"
        "after the time limit the conversation ends with a tool message\n"
        "succeeded: Good night.\n"
    ),
    "steering": (
        "prompt: Tell me about fjords.\nsteering: Be brief.\n  answer: Fjords: deep, old.\n"
        "follow_up: And skerries?\n  answer: Skerries: small, many.\none run, 3 rounds\n"
    ),
    "many_sessions": "the subscription saw {'succeeded': 100}\n",
    "progress": "printed 3 of 3\nremembered {'last_report': 'Tides'}\nIt is in the tray.\n",
    "test_an_agent": "passed: test_a_failed_call_reaches_the_model_in_words_meant_for_it\n",
    "faulty_server": "succeeded: The tide is low.\nthe server saw: sent, cut, sent\n",
}


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_an_example_prints_what_it_promises(name: str) -> None:
    """An example that does not run is worse than none. A new one must say here what it prints."""
    done = subprocess.run(
        [sys.executable, "-X", "utf8", EXAMPLES / f"{name}.py"], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert PRINTED[name] in done.stdout
