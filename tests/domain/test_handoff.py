"""One history for every model: what another model wrote, in the form that this one takes."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings

from agentrio.domain.handoff import CLOSING, NO_FILE, NO_IMAGE, OPENING, for_model
from agentrio.domain.messages import Message, ModelTag, user_message
from agentrio.domain.parts import File, Image, Part, RawBlock, Text, Thinking, ToolCall, ToolResult

from . import values

A, B = ModelTag("anthropic", "messages", "a"), ModelTag("openai", "responses", "b")
IMAGE, FILE = Image("aGk=", "image/png"), File("aGk=", "text/plain")
CALL = ToolCall("c", "p", "look", "{}", {})


def of_a(*parts: Part) -> Message:
    """What model A said."""
    return Message("m", "assistant", parts, A)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(values.messages)
def test_a_model_gets_its_own_messages_verbatim(message: Message) -> None:
    """J06: signed blocks go back to the model that wrote them, byte for byte."""
    own = attrs.evolve(message, model=A)
    assert for_model(own, A) is own


@pytest.mark.parametrize(
    ("parts", "becomes"),
    [
        ((Thinking("hm", "sig"), Text("x")), (Text(f"{OPENING}hm{CLOSING}\n\n"), Text("x"))),
        ((Thinking("hm"),), (Text(f"{OPENING}hm{CLOSING}"),)),
        ((Text("x"), Thinking("hm")), (Text("x"), Text(f"\n\n{OPENING}hm{CLOSING}"))),
        (
            (Text("x"), Thinking("hm"), RawBlock("web", "{}"), Thinking("so"), Text("y")),
            (Text("x"), Text(f"\n\n{OPENING}hm{CLOSING}\n\n"), Text(f"{OPENING}so{CLOSING}\n\n"), Text("y")),
        ),
        ((Thinking("hm"), Thinking("", "sig", True), CALL), (Text(f"{OPENING}hm{CLOSING}"), CALL)),
        ((Thinking("", "sig", True), Text("x", "{}")), (Text("x"),)),
        ((RawBlock("web", "{}"), attrs.evolve(CALL, raw="{}")), (CALL,)),
        ((Text("x"), CALL), (Text("x"), CALL)),
    ],
    ids=[
        "reasoning before text",
        "reasoning alone",
        "reasoning behind text",
        "reasoning between texts",
        "reasoning before a call",
        "hidden reasoning",
        "blocks of its own",
        "plain",
    ],
)
def test_another_models_message_keeps_what_can_be_read(parts: tuple[Part, ...], becomes: tuple[Part, ...]) -> None:
    """J06: no model is sent another one's signatures, and none loses what was said."""
    assert for_model(of_a(*parts), B).parts == becomes


def test_another_models_reasoning_may_be_dropped_instead() -> None:
    """Who does not want to pay for it need not."""
    assert for_model(of_a(Thinking("hm"), Text("x")), B, thinking="drop").parts == (Text("x"),)


def test_a_model_without_eyes_is_told_what_was_left_out() -> None:
    """In messages and in results: a conversation goes on with a model that takes no pictures or files."""
    result = ToolResult("c", "look", "succeeded", (IMAGE, FILE, Text("x")))
    message = user_message("u", (Text("see"), IMAGE, FILE))

    assert for_model(message, B) is message
    assert for_model(message, B, images=False).parts == (Text("see"), Text(NO_IMAGE), FILE)
    assert for_model(message, B, files=False).parts == (Text("see"), IMAGE, Text(NO_FILE))
    (told,) = for_model(Message("t", "tool", (result,)), B, images=False, files=False).parts
    assert isinstance(told, ToolResult)
    assert told.parts == (Text(NO_IMAGE), Text(NO_FILE), Text("x"))
    plain = Message("t", "tool", (attrs.evolve(result, parts=(Text("x"),)),))
    assert for_model(plain, B, images=False) is plain
    assert for_model(of_a(Thinking("hm", "sig")), A, images=False).parts == (Thinking("hm", "sig"),)
