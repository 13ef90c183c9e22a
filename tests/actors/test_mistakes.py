"""Mistakes of those who begin: each is answered at once, with what is wrong and what to write instead."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio

from agentrio import (
    Agent,
    CodecError,
    DeclarationError,
    Limits,
    NothingToProceed,
    RunNotEnded,
    Scripted,
    Session,
    SessionHandle,
    ask,
    open_runtime,
    prompt_layer,
    read_tool,
    run_sync,
)
from agentrio.domain.messages import user_message
from agentrio.domain.session import Queued
from agentrio.parts import File, Image, Text
from agentrio.providers.scripted import call


def talker() -> Agent[Any]:
    """An agent that always has an answer."""
    return Agent(model=Scripted(["Hi."] * 9))


# Threads


@pytest.mark.parametrize(
    "touch",
    [
        lambda session: session.stop(),
        lambda session: session.current_run.stop(),
        lambda session: session.steer("Briefly."),
        lambda session: session.follow_up("And then?"),
        lambda session: session.unqueue("s-q1"),
        lambda session: trio.run(session.ask, "Go."),
        lambda session: trio.run(session.close),
        lambda session: trio.run(session.wait_idle),
        lambda session: session.events(),
        lambda session: trio.run(session.current_run.wait),
    ],
)
async def test_another_thread_is_refused(touch: Callable[[SessionHandle], object]) -> None:
    """Trio's own state would be corrupted, and tell of it much later in words that name nobody."""

    @read_tool
    async def stall() -> str:
        """Keeps the run open."""
        await trio.sleep_forever()

    agent = Agent(model=Scripted([[call("stall")], "Hi."]), tools=[stall])
    async with open_runtime() as runtime, runtime.open_session(agent, id="s") as session:
        async with session.run("Go."):
            with pytest.raises(RuntimeError, match=r"(session s|run s-r1) belongs to another.*trio\.from_thread"):
                await trio.to_thread.run_sync(touch, session)
        assert (await session.ask("Go.")).status == "succeeded"


@pytest.mark.parametrize(
    "touch",
    [
        lambda runtime: trio.run(runtime.start_session, talker()),
        lambda runtime: runtime.session("s"),
        lambda runtime: runtime.subscribe(),
        lambda runtime: trio.run(runtime.wait_quiet),
        lambda runtime: trio.run(runtime.close),
    ],
)
async def test_the_runtime_belongs_to_its_thread_too(touch: Callable[[Any], object]) -> None:
    """A session opened from elsewhere would be started in a loop that does not run there."""
    async with open_runtime() as runtime, runtime.open_session(talker(), id="s") as session:
        with pytest.raises(RuntimeError, match=r"the runtime belongs to another.*trio\.from_thread"):
            await trio.to_thread.run_sync(touch, runtime)
        block = session.events()
        with pytest.raises(RuntimeError, match="this reader belongs to another"):
            await trio.to_thread.run_sync(trio.run, block.__aenter__)
        assert (await session.ask("Go.")).status == "succeeded"


async def test_a_thread_may_ask_the_loop_to_do_it() -> None:
    """What the refusal says works, for a plain ``def`` tool and for a thread of the program's own."""
    token = trio.lowlevel.current_trio_token()
    stopped: list[bool] = []

    @read_tool
    def give_up() -> str:
        """Stops the run that it belongs to."""
        stopped.append(trio.from_thread.run_sync(session.stop))
        return "stopped"

    agent = Agent(model=Scripted([[call("give_up")], "Hi."]), tools=[give_up])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        assert (await session.ask("Go.")).status == "cancelled"
        thread = threading.Thread(
            target=lambda: stopped.append(trio.from_thread.run_sync(session.stop, trio_token=token))
        )
        thread.start()
        await trio.to_thread.run_sync(thread.join)
        assert stopped == [True, False]


# Results


async def test_a_result_asked_for_inside_its_block_says_where_to_ask() -> None:
    """A stream has no ``wait()``, so the block's own way is named first."""
    async with open_runtime() as runtime, runtime.open_session(talker()) as session, session.run("Go.") as run:
        with pytest.raises(RunNotEnded, match="leave its block first"):
            _ = run.result


async def test_nothing_to_proceed_from_in_an_empty_session() -> None:
    """The message tells an empty conversation from a finished one."""
    async with open_runtime() as runtime, runtime.open_session(talker()) as session:
        with pytest.raises(NothingToProceed, match=r"no message yet.*ask\(\)"):
            await session.proceed()


# Opening


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"agents": talker()}, "agents is a Agent; put it into a list"),
        ({"agents": "anthropic:x"}, "agents is a str; put it into a list"),
        ({"agents": ["anthropic:x"]}, r"'anthropic:x' among the agents is none; give Agent\(...\)"),
        ({"thread": 3}, "has no 'thread'; did you mean 'threads'\\?"),
        ({"store": 3}, "store= is not supported by this version"),
        ({"threads": 0}, "threads is 0; it must be a whole number of at least 1"),
        ({"threads": True}, "threads is True; it must be a whole number"),
        ({"threads": 2.0}, "threads is 2.0; it must be a whole number"),
        ({"agents": None}, r"agents is a NoneType; give a list of Agent\(...\) objects"),
        ({"rng": 5}, r"rng is 5; give a random.Random\(...\)"),
    ],
)
async def test_a_wrong_option_of_a_runtime_is_refused(options: dict[str, Any], words: str) -> None:
    """No threads would mean that every plain ``def`` tool waits for ever."""
    with pytest.raises(DeclarationError, match=words):
        async with open_runtime(**options):
            pass


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"agent": "echo"}, r"give an Agent\(...\), or the name of one .* was given: agent\."),
        ({"value": "{}"}, r"value is a str; give a Session, such as Session\.from_json\(text\)"),
        ({"value": {}}, "value is a dict; give a Session"),
        ({"id": 3}, "id is 3; it is a text, or left out"),
        ({"id": ""}, "id is ''; it is a text"),
        ({"agent": ["agent"]}, r"There is no agent \['agent'\]; give an Agent"),
        ({"agent": None}, "There is no agent None"),
        ({"identity": "u1"}, r"identity is a str; give an Identity, such as Identity\(subject="),
    ],
)
async def test_a_wrong_option_of_a_session_is_refused(options: dict[str, Any], words: str) -> None:
    """A value is often at hand as its JSON, and is told how to be read."""
    async with open_runtime([talker()]) as runtime:
        with pytest.raises((DeclarationError, TypeError), match=words):
            async with runtime.open_session(**{"agent": "agent", **options}):
                pass


Made: Any = Session  # whatever the types say: they are not looked at when a value is made
MadeQueued: Any = Queued


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Made(5), "value.id is 5; it is a text"),
        (Made(""), "value.id is ''"),
        (Made("s", 5), "value.agent is 5"),
        (Made("s", messages="abc"), "messages is a str; it must be a tuple of Message"),
        (Made("s", messages=("a",)), "messages is a tuple; it must be a tuple of Message"),
        (Made("s", queue=("a",)), "queue is a tuple; it must be a tuple of Queued"),
        (Made("s", queue=(MadeQueued("a", "steering"),)), "what waits in queue is"),
        (Made("s", memory=None), "value.memory is a NoneType; it is a dict"),
        (Made("s", runs=-3), "value.runs is -3; it is a whole number of at least 0"),
        (Made("s", seq=True), "value.seq is True"),
        (Made("s", queued_total=1.5), "value.queued_total is 1.5"),
    ],
)
async def test_a_value_that_no_session_can_have_had_is_refused(value: Session, words: str) -> None:
    """When it is opened; in a run it would be a crash that names nobody."""
    async with open_runtime() as runtime:
        with pytest.raises(ValueError, match=words):
            await runtime.start_session(talker(), value=value)


async def test_a_value_of_another_agent_opens_with_a_word(caplog: pytest.LogCaptureFixture) -> None:
    """Handing a conversation on is meant; doing so unawares is not."""
    async with open_runtime() as runtime:
        async with runtime.open_session(talker(), value=Session("s", "alice")) as session:
            assert (await session.ask("Go.")).text == "Hi."
        assert "session s was begun by agent 'alice' and goes on with 'agent'" in caplog.text


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"max_pending": "5"}, TypeError, "max_pending is '5'; it is a whole number of events"),
        ({"max_pending": None}, TypeError, "max_pending is None"),
        ({"max_pending": True}, TypeError, "max_pending is True"),
        ({"max_pending": 2.5}, TypeError, "max_pending is 2.5"),
        ({"max_pending": float("nan")}, TypeError, "max_pending is nan"),
        ({"max_pending": 0}, ValueError, "max_pending is 0; it is at least 1"),
        ({"max_pending": -1, "on_lag": "drop"}, ValueError, "max_pending is -1"),
        ({"session": 5}, TypeError, "session is a int; give the id of an open session"),
    ],
)
async def test_a_wrong_option_of_a_subscription_is_refused(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    """Where it is given: found out when an event comes, it would be a fault in the run of somebody else."""
    async with open_runtime() as runtime:
        with pytest.raises(error, match=words):
            runtime.subscribe(**options)


@pytest.mark.parametrize(
    ("after", "error", "words"),
    [
        ("3", TypeError, "after is '3'; it is the seq of an event"),
        (True, TypeError, "after is True"),
        (float("nan"), TypeError, "after is nan"),
        (-5, ValueError, "after is -5, and the events of session s go from 1 to 6"),
        (7, ValueError, "after is 7.* go from 1 to 6; give the seq of the last one that was read"),
    ],
)
async def test_a_cursor_that_no_event_can_have_had_is_refused(after: Any, error: type[Exception], words: str) -> None:
    """It would tell of events that were never lost, or wait for those that are not meant."""
    async with open_runtime() as runtime, runtime.open_session(talker(), id="s") as session:
        await session.ask("Go.")
        assert session.value.seq == 6
        with pytest.raises(error, match=words):
            session.events(after=after)


async def test_a_readers_block_is_entered_once() -> None:
    """The second reader would take the place of the first, which nobody could close any more."""
    async with open_runtime() as runtime, runtime.open_session(talker()) as session:
        block = session.events()
        async with block:
            with pytest.raises(RuntimeError, match=r"entered already; call events\(\) or subscribe\(\) again"):
                async with block:
                    pass


@pytest.mark.parametrize("reason", [123, ValueError("x"), ["a"]])
async def test_a_stops_reason_is_a_text(reason: Any) -> None:
    """It goes into the last event, which has to be read back from JSON."""
    async with open_runtime() as runtime, runtime.open_session(talker()) as session, session.run("Go.") as run:
        assert session.current_run is not None
        for stop in (run.stop, session.stop, session.current_run.stop):
            with pytest.raises(TypeError, match="it is a text, or left out"):
                stop(reason=reason)
        assert run.outcome is None
        with pytest.raises(TypeError, match=r"message_id is a .*; give the one of a Receipt"):
            session.unqueue(reason)


async def test_a_message_that_no_request_can_hold_is_refused() -> None:
    """Kept, it would be in the way of each later one. What is left of the limit by prompt and tools counts."""
    limits = Limits(max_context_chars=1_000)
    agent = Agent(model=Scripted(["Hi."]), limits=limits, prompt=["x" * 100, prompt_layer("l", lambda _: "y")])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        for take in (session.start, session.ask):
            with pytest.raises(ValueError, match=r"has 901 characters, and a request has room for 900.*=1000"):
                await take("x" * 901)
        for queue in (session.steer, session.follow_up):
            with pytest.raises(ValueError, match=r"shorten it, or raise the limit"):
                queue("x" * 901)
        assert session.value.seq == 0
        assert (await session.ask("Go.")).text == "Hi."


@pytest.mark.parametrize("content", [None, 3, ["Go."], {"role": "user", "content": "Go."}])
async def test_what_is_no_message_is_refused(content: Any) -> None:
    """None too: it stands for no message nowhere in public."""
    async with open_runtime() as runtime, runtime.open_session(talker()) as session:
        with pytest.raises(TypeError, match="a user message holds text"):
            await session.ask(content)


MESSAGE: Any = user_message("m", "Go.")
IN_A_LIST: Any = [MESSAGE]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Session("s", memory={"a": [(1, 2)]}), r"could not be stored: memory\.a\[0\] is a tuple"),
        (Session("s", messages=IN_A_LIST), "messages is a list; it must be a tuple of Message"),
        (Session("s", messages=(IN_A_LIST[0].parts[0],)), "messages is a tuple; it must be a tuple of Message"),
        (Session("s", queue=(MESSAGE,)), "queue is a tuple; it must be a tuple of Queued"),
        (Session("s", messages=(attrs.evolve(MESSAGE, parts=[]),)), "the parts of message 'm' are a list, not a tuple"),
    ],
)
async def test_a_hand_made_conversation_that_could_not_be_stored_is_not_opened(value: Session, words: str) -> None:
    """It would run for days before anyone tried to save it."""
    async with open_runtime() as runtime:
        with pytest.raises(CodecError, match=words):
            await runtime.start_session(talker(), value=value)


class Lookalike:
    """Has the name of a part, and nothing else of it."""

    text = "Go."
    raw = None


Lookalike.__name__ = "Text"


class MyText(Text):
    """A class of the application's own: its conversation could not be written as JSON."""


@pytest.mark.parametrize("content", [Lookalike(), MyText("Go."), (Text("Go."), "and go")], ids=["name", "sub", "str"])
async def test_what_only_looks_like_a_part_is_refused(content: Any) -> None:
    """What got in would make the conversation impossible to save."""
    async with open_runtime() as runtime, runtime.open_session(talker()) as session:
        for put in (session.ask, session.start):
            with pytest.raises(TypeError, match="a user message holds text, images and files, not a"):
                await put(content)
        with pytest.raises(TypeError, match="or a tuple of them"):
            session.follow_up(content)
        assert (await session.ask("Go.")).status == "succeeded"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (" ", "the message is empty"),
        ((), "the message is empty"),
        (Text(""), "the message is empty"),
        ((Text(" "), Text("")), "the message is empty"),
        ("\0 \0", "the message is empty"),
        (Image("not base64!", "image/png"), "the data of the image is not base64"),
        (File("not base64!", "text/plain"), "the data of the file is not base64"),
        (Image("aGk=", "text/html"), "an image has the media type 'text/html'"),
        ((Text("See:"), Image("aGk=" * 100, "image/png")), "the image has 299 bytes; at most 200 are allowed"),
    ],
)
async def test_a_message_that_no_model_takes_is_refused(content: Any, words: str) -> None:
    """Once it is part of the conversation, every later request would fail of it too."""
    agent = Agent(model=Scripted(["Hello."]), limits=Limits(max_image_bytes=200))
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        with pytest.raises(ValueError, match=words):
            await session.ask(content)
        with pytest.raises(ValueError, match=words):
            session.steer(content)
        assert session.value.messages == ()


async def test_a_message_of_parts_is_stored_and_read_back(autojump_clock: trio.testing.MockClock) -> None:
    """As many images as one likes; a text beside an image may be empty; odd Unicode is mended on the way in."""
    image = Image("aGk=", "image/png")
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Fine."]))) as session:
        await session.ask((Text(""), *[image] * 5, Text("\ud83d\ude00 \ud83d")))
        assert session.value.messages[0].parts == (Text(""), *[image] * 5, Text("\U0001f600 \ufffd"))
        assert Session.from_json(session.value.to_json()) == session.value


def test_without_a_trio_loop_the_message_names_trio() -> None:
    """Under asyncio, Trio's own message is about an attribute of its own."""

    async def main() -> None:
        async with open_runtime():
            pass

    with pytest.raises(RuntimeError, match=r"no Trio loop runs here; begin with trio\.run\(main\)"):
        asyncio.run(main())
    with pytest.raises(RuntimeError, match="no Trio loop runs here"):
        asyncio.run(ask(talker(), "Go."))


async def test_run_sync_inside_trio_names_ask() -> None:
    """Trio's own message is about a run() that the user did not write."""
    with pytest.raises(RuntimeError, match=r"write `await agentrio\.ask\(agent, text\)` there"):
        run_sync(talker(), "Go.")


# Blocks


async def test_a_block_that_is_not_entered_says_so() -> None:
    """Awaiting or iterating it is the likeliest slip; Python's own message names a class of ours and no way out."""
    async with open_runtime() as runtime, runtime.open_session(talker()) as session:
        run: Any = session.run("Go.")
        with pytest.raises(TypeError, match=r"write `async with session\.run\(text\) as run:`.* await session\.ask"):
            await run
        with pytest.raises(TypeError, match=r"enter this first: write `async with session\.run\(text\) as run:`"):
            async for _ in run:
                pass
        events: Any = runtime.subscribe()
        with pytest.raises(TypeError, match=r"enter this first: write `async with \.\.\. as events:`"):
            async for _ in events:
                pass
