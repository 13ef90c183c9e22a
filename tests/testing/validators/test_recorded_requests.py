"""Requests that real servers answered are taken, and what they refused for its form is refused."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from agentrio.testing.validators import Demands, WireName, validate
from tests.providers.corpus import WIRE

OWN_WAYS = {
    "anthropic-llamacpp/no-message-start-1-smollm2-135m": "llama.cpp takes any temperature, and empty texts",
    "openai-chat/legacy-function-call-1-gpt-3.5-turbo-0125": "functions are what tools were called until 2023",
}
REFUSED = {
    "anthropic/error-400-3": ("messages.0", "object"),
    "compat-llamacpp-local/error-400-bad-json-schema-1-smollm2-135m": ("tools[0].function.parameters", "nonsense"),
    "openai-chat/error-400-2": ("messages[1].content[0].type", "required"),
    "openai-responses/error-400-1": ("tools[0].parameters", "Missing 'unit'"),
}
NO_PREFILL = "anthropic/error-400-1"


@attrs.frozen
class Asked:
    name: str
    wire: WireName
    status: int
    body: dict[str, Any] = attrs.field(repr=False)


def _asked() -> dict[str, Asked]:
    found = {}
    for path in sorted(WIRE.glob("*/*.meta.json")):
        meta = json.loads(path.read_text())
        body = meta.get("request")
        if isinstance(body, dict) and "model" in body and not meta["request_cut"]:
            name = meta["case"]
            found[name] = Asked(name, _wire(meta["api"]), meta["http_status"], body)
    return found


def _wire(api: str) -> WireName:
    return "messages" if api == "anthropic" else "responses" if "responses" in api else "chat"


ASKED = _asked()
TAKEN = [it for it in ASKED.values() if it.status == 200 and it.name not in OWN_WAYS]


def test_the_corpus_is_present() -> None:
    """Where it is not, the run says so."""
    if not ASKED:
        pytest.skip("../shared/wire is absent")
    assert len(TAKEN) >= 170


@pytest.mark.parametrize("one", TAKEN, ids=lambda one: one.name)
def test_what_a_server_answered_is_taken(one: Asked) -> None:
    """A validator that is too strict would make tests fail that have no fault."""
    assert validate(one.wire, one.body) == []


@pytest.mark.parametrize("name", [name for name in OWN_WAYS if name in ASKED])
def test_what_one_server_alone_takes_is_refused(name: str) -> None:
    """Each with its reason; one that is taken by now must leave the list."""
    assert validate(ASKED[name].wire, ASKED[name].body)


@pytest.mark.parametrize("name", [name for name in REFUSED if name in ASKED])
def test_what_a_server_refused_for_its_form_is_refused(name: str) -> None:
    """At the same place, for the same reason."""
    path, says = REFUSED[name]
    assert any(it.path == path and says in it.reason for it in validate(ASKED[name].wire, ASKED[name].body))


@pytest.mark.skipif(NO_PREFILL not in ASKED, reason="../shared/wire is absent")
def test_what_a_model_refuses_is_a_demand() -> None:
    """Newer models of Anthropic's take no prefill."""
    told = validate("messages", ASKED[NO_PREFILL].body, Demands(prefill=False))
    assert "This model does not support assistant message prefill" in told[0].reason


def test_bodies_may_be_bytes_and_are_not_too_large() -> None:
    """As they stand on the wire."""
    body = b'{"model":"m","input":"a"}'
    assert validate("responses", body) == []
    assert "Request too large" in validate("responses", body, Demands(largest=20))[0].reason
    assert "could not parse" in str(validate("chat", b"{")[0])
    assert str(validate("chat", b"[" * 100_000)[-1]).startswith("We could not parse")
