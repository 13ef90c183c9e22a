"""The scripted model: one reply per call, in order, and everything recorded."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from agentrio.domain.errors import DeclarationError
from agentrio.domain.messages import user_message
from agentrio.domain.parts import Text, Thinking, ToolCall
from agentrio.domain.render import ModelRequest
from agentrio.domain.usage import Usage
from agentrio.providers.base import Model, ModelClient, ModelResponse, PartDelta, ProviderError, Timeouts
from agentrio.providers.scripted import Reply, Scripted, ScriptedCall, ScriptedReply, call

REQUEST = ModelRequest("s", (user_message("m", "hi"),))


async def ask(client: ModelClient, most: int = 99) -> tuple[ModelResponse, list[PartDelta]]:
    deltas: list[PartDelta] = []
    async with client.stream(REQUEST, Timeouts()) as stream:
        try:
            while len(deltas) < most:
                deltas += await stream.receive()
        except trio.EndOfChannel:
            pass
        return stream.response(), deltas


async def test_a_text_is_streamed_in_several_deltas() -> None:
    """As a real model does, with offsets."""
    model = Scripted(["Hello, this is a text."])
    assert isinstance(model, Model)
    assert model.tag.provider == "scripted"
    async with model.open() as client:
        response, deltas = await ask(client)
    assert deltas == [PartDelta("text", 0, 0, "Hello, this "), PartDelta("text", 0, 12, "is a text.")]
    assert response == ModelResponse((Text("Hello, this is a text."),), "end", "end", Usage(10, 5), "scripted")
    assert model.requests == [REQUEST]


async def test_calls_and_reasoning_come_in_their_order() -> None:
    """Raw arguments stay raw, valid or not; the stop reason follows from the calls unless it is given."""
    replies: list[ScriptedReply] = [
        [call("add", a=1), ScriptedCall("odd", "{", "mine")],
        Reply("text", [call("f")], "why", usage=Usage(1)),
        Reply("cut", stop_reason="max_tokens"),
    ]
    async with Scripted(replies).open() as client:
        first, second, third = [(await ask(client))[0] for _ in replies]
    assert first.parts == (
        ToolCall("", "call_0", "add", '{"a":1}', {"a": 1}),
        ToolCall("", "mine", "odd", "{", None),
    )
    assert first.stop_reason == "tool_calls"
    assert second.parts == (Thinking("why"), Text("text"), ToolCall("", "call_0", "f", "{}", {}))
    assert (second.usage, third.stop_reason) == (Usage(1), "max_tokens")


async def test_a_response_that_is_left_early_is_partial() -> None:
    """Calls with open arguments are left out."""
    async with Scripted([Reply("some text", [call("f", word="x" * 30)], "why")] * 5, restart=True).open() as client:
        seen = [(await ask(client, most))[0] for most in (1, 2, 3, 99)]
    assert seen[0].parts == (Thinking("why"),)
    assert seen[1].parts == seen[2].parts == (Thinking("why"), Text("some text"))
    assert [response.stop_reason for response in seen] == [None, None, None, "tool_calls"]
    async with Scripted([[call("f"), call("g", word="x" * 30)]]).open() as client:
        assert [part.name for part in (await ask(client, 1))[0].parts if isinstance(part, ToolCall)] == ["f"]


async def test_a_reply_may_be_a_function_of_the_request_or_an_error() -> None:
    """Errors are raised where a server's would be."""
    overloaded = ProviderError("Overloaded", code="overloaded", retry="request")
    seven: Any = 7
    script = Scripted(
        [lambda request: request.messages[0].text * 2, overloaded, lambda _: ValueError("bug"), lambda _: seven]
    )
    async with script.open() as client:
        assert (await ask(client))[0].parts == (Text("hihi"),)
        for kind, words in ((ProviderError, "Overloaded"), (ValueError, "bug"), (DeclarationError, "reply 4 is 7")):
            with pytest.raises(kind, match=words):
                await ask(client)


async def test_a_script_that_has_run_out_says_how_long_it_was() -> None:
    """It goes on where it stands when it is opened again, unless it restarts."""
    script = Scripted(["one"])
    async with script.open() as client:
        await ask(client)
    async with script.open() as client:
        with pytest.raises(ProviderError, match="1 replies were scripted, and this is model call 2") as caught:
            await ask(client)
    assert caught.value.code == "invalid_response"
    again = Scripted(["one"], restart=True)
    for _ in range(2):
        async with again.open() as client:
            await ask(client)


@pytest.mark.parametrize("alone", ["Hi.", call("f")])
def test_a_lone_reply_is_told_to_stand_in_a_list(alone: Any) -> None:
    """A text is a sequence too, and would be one reply per letter."""
    with pytest.raises(DeclarationError, match="takes a list of replies; put this one into a list"):
        Scripted(alone)
    with pytest.raises(DeclarationError, match=r"reply 1 is a single call; .* \[call\('f', \.\.\.\)\]"):
        Scripted([call("f")])  # type: ignore[list-item]  # wrong on purpose


@pytest.mark.parametrize("wrong", [7, ["text"], [call("f"), None], None])
def test_a_wrong_reply_is_refused_at_once(wrong: object) -> None:
    """Naming which one and what it may be."""
    with pytest.raises(DeclarationError, match="Scripted reply 2"):
        Scripted(["fine", wrong])  # type: ignore[list-item]  # wrong on purpose
