"""Whatever became of a history, each model's server takes it."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings

from agentrio.domain.history import normalise_history
from agentrio.domain.messages import Message, user_message
from agentrio.domain.parts import CallError, File, RawBlock, Text, ToolCall, ToolResult
from agentrio.domain.session import Session
from tests.handoff.histories import histories
from tests.handoff.targets import MAIN, MODELS

EXAMPLES = 3_000 if os.environ.get("AGENTRIO_FULL") == "1" else 100
TAGS = [MODELS[name].tag for name in MAIN] + [MODELS["chat-openrouter"].tag]

sampled = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@sampled
@given(histories(TAGS))
def test_a_history_is_normal_after_one_pass(history: list[Message]) -> None:
    """So it does not matter who did it before."""
    once = normalise_history(history)
    assert normalise_history(once) == once


@sampled
@given(histories(TAGS))
def test_every_server_takes_every_history(history: list[Message]) -> None:
    """Cut, orphaned, stopped, with images, and with reasoning of any model."""
    if not any(message.text.strip("\0 \n") for message in normalise_history(history)):
        return  # nothing that could be sent
    for name, model in MODELS.items():
        assert model.problems(history) == [], name


def test_an_answer_that_leaves_nothing_at_the_end_is_gone_on_with_all_the_same() -> None:
    """What stands before it was said and done, and no server goes on with that."""
    block = RawBlock(
        "server_tool_use", '{"type": "server_tool_use", "id": "srvtoolu_6", "name": "search", "input": {}}'
    )
    for name, model in MODELS.items():
        others = MODELS["responses-openai" if model.tag.api == "messages" else "anthropic"].tag
        said = Message("a", "assistant", (Text("Done."),), model.tag)
        stopped = Message("b", "assistant", (block,), others, interrupted=True)
        assert model.problems([user_message("u", "Go on."), said, stopped]) == [], name


def test_an_answer_at_the_end_has_no_space_there_that_only_shows_on_the_wire() -> None:
    """NUL characters go when it is encoded, and may have hidden some."""
    for model in MODELS.values():
        stopped = Message("a", "assistant", (Text("x \0 \0"),), model.tag, interrupted=True)
        history = [user_message("u", "Hi."), stopped]
        assert model.problems(history) == []


@sampled
@given(histories(TAGS))
def test_a_history_that_was_saved_is_sent_to_the_same_bytes(history: list[Message]) -> None:
    """J10: whoever goes on in another process finds the server's cache, and signed blocks as they were."""
    again = Session.from_json(Session("s", messages=tuple(history)).to_json())
    assert again.messages == tuple(history)
    for name in MAIN:
        assert MODELS[name].data(list(again.messages)) == MODELS[name].data(history)


@pytest.mark.parametrize("name", MODELS)
def test_a_file_whose_data_is_no_base64_is_told_by_its_name(name: str) -> None:
    """On the OpenAI wires it ended the session as crashed, in this run and in each later one."""
    said = MODELS[name].data([user_message("u", (File("x", "text/plain", "notes.txt"), Text("Read it.")))])
    assert b"notes.txt" in said


ODD_NAMES = ["look at", "", "look\x1b[2J", "n" * 200, "spähen", "default_api.look", "look\0"]


@pytest.mark.parametrize("odd", ODD_NAMES)
@pytest.mark.parametrize("name", MODELS)
def test_a_tool_name_that_a_model_made_up_stays_no_obstacle(name: str, odd: str) -> None:
    """Servers let their models say any name, and refuse all but letters, digits, ``_`` and ``-`` in what is sent."""
    call = ToolCall("run/1/0", "toolu_1", odd, "{}", {})
    error = CallError("unknown_tool", "There is no such tool.")
    model = MODELS[name]
    history = [
        user_message("u", "Look."),
        Message("a", "assistant", (Text("I do."), call), model.tag),
        Message("t", "tool", (ToolResult(call.id, odd, "failed", error=error),)),
    ]
    assert model.problems(history) == []
