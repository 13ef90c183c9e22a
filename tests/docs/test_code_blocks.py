"""The code in README.md and docs/ runs as it is shown.

The Python blocks of a page are run in their order, in one namespace, as if they were one program. A `text` block behind
the line "It prints:" is what the block before it printed. A block whose first line is a comment "# needs ..._API_KEY"
is compiled only.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/howto").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\nIt prints:\n\n```text\n(?P<printed>.*?)^```\n)?", re.M | re.S)
NEEDS_KEY = re.compile(r"# needs \w+_API_KEY\n")


@attrs.frozen
class Block:
    """One Python block, with the line that it begins on and, where the page says it, what it prints."""

    line: int
    code: str
    printed: str | None

    @property
    def needs_key(self) -> bool:
        """Whether it can't be run here."""
        return NEEDS_KEY.match(self.code) is not None


def blocks(page: str) -> list[Block]:
    """The Python blocks of a page."""
    return [
        Block(page.count("\n", 0, found.start("code")) + 1, found["code"], found["printed"])
        for found in BLOCK.finditer(page)
    ]


def run_page(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the blocks of a page, and compare what they print."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(path.read_text(encoding="utf-8")):
        tree = ast.parse(block.code, str(path))
        ast.increment_lineno(tree, block.line - 1)  # so that a traceback names the line of the page
        code = compile(tree, str(path), "exec", dont_inherit=True)
        if block.needs_key:
            continue
        exec(code, namespace)
        printed = capsys.readouterr().out
        if block.printed is not None:
            assert printed == block.printed, f"{path.name}, line {block.line}"


@pytest.mark.parametrize(
    "path", [page for page in PAGES if "```python\n" in page.read_text("utf-8")], ids=lambda p: p.name
)
def test_the_code_of_a_page_runs_as_shown(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A reader who copies a page's code gets what the page says."""
    run_page(path, capsys)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_no_output_is_out_of_reach(path: Path) -> None:
    """Each "It prints:" belongs to a block, so that none is shown without being checked."""
    page = path.read_text(encoding="utf-8")
    assert page.count("It prints:\n") == sum(block.printed is not None for block in blocks(page))
    assert page.count("```python\n") == len(blocks(page))


def test_a_wrong_page_is_found_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The check itself: a wrong output, and code that fails on a line of the page."""
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\nIt prints:\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md, line 2"):
        run_page(page, capsys)
    page.write_text("# Title\n\n```python\n# needs SOME_API_KEY\n1 / 0\n```\n\n```python\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as failed:
        run_page(page, capsys)
    assert failed.traceback[-1].lineno == 8
