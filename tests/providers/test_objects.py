"""Whether a text that grows is a whole object by now."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentrio.providers.wire.json import parse_arguments
from agentrio.providers.wire.objects import ObjectScan

MARKS = st.text(st.sampled_from(list('{}[]"\\:,a1 \n')), max_size=30)
WHOLE = st.sampled_from(
    ['{"a": "}\\\\"}', '{"a\\"": [{}, "]"]} ', " {}", '{"a": {"b": []}}', "{x}", '{"a":1}}', "[{}]"]
)


@given(MARKS | WHOLE, st.data())
@example('{"\\"":1}', None)
def test_it_is_one_whenever_the_parser_takes_it(text: str, data: st.DataObject | None) -> None:
    """Whatever the pieces are, and whenever it is asked."""
    scan, fed = ObjectScan(), ""
    while len(fed) < len(text):
        size = 1 if data is None else data.draw(st.integers(1, len(text) - len(fed)))
        scan.feed(text[len(fed) : len(fed) + size])
        fed = text[: len(fed) + size]
        assert scan.holds(lambda: fed) == (bool(fed.strip()) and parse_arguments(fed) is not None)  # noqa: B023  # asked now


def test_it_is_parsed_once() -> None:
    """And not at all before its last bracket has come."""
    scan, asked = ObjectScan(), 0

    def text() -> str:
        nonlocal asked
        asked += 1
        return '{"a": {}}'

    for piece in ('{"a": ', "{}", "}", " ", ""):
        scan.feed(piece)
        assert scan.holds(text) == (piece in ("}", " ", ""))
    assert asked == 1
    scan.feed("{")
    assert not scan.holds(text)


@pytest.mark.parametrize("text", ["[]", "x{}", '"{}"'])
def test_what_begins_otherwise_never_will_be(text: str) -> None:
    """Nothing behind its first character is looked at."""
    scan = ObjectScan()
    scan.feed(text)
    scan.feed("{}")
    assert not scan.holds(lambda: "{}")
