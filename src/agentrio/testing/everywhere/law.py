"""What must hold of the events and the conversation of a run, however it ended. Pure: values in, complaints out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from agentrio.domain.events import (
    CallFinished,
    CallProposed,
    CallStarted,
    Event,
    MessageCompleted,
    MessageDiscarded,
    MessageStarted,
    RoundEnded,
    RoundStarted,
    RunEnded,
    RunStarted,
)
from agentrio.domain.messages import Message
from agentrio.domain.parts import Text, ToolCall, ToolResult

__all__ = ["check_events", "check_history"]


def check_history(messages: Sequence[Message]) -> list[str]:
    """What is wrong with a conversation; empty where every provider takes it.

    It starts with the user; the calls of a message have one result each, in their order, in the message directly
    behind; nobody says nothing; a model does not speak twice in a row unless its first message was cut off.
    """
    problems = [] if not messages or messages[0].role == "user" else ["the conversation does not start with the user"]
    if len({message.id for message in messages}) < len(messages):
        problems.append("two messages have the same id")
    for index, message in enumerate(messages):
        before = messages[index - 1] if index else None
        behind = messages[index + 1] if index + 1 < len(messages) else None
        problems += _check_parts(message)
        if message.role == "assistant":
            problems += _check_answer(message, before, behind)
        if message.role == "tool" and (before is None or before.role != "assistant"):
            problems.append(f"the results of {message.id} are not behind the calls they answer")
    return problems


def _check_parts(message: Message) -> Iterable[str]:
    if not message.parts:
        yield f"message {message.id} is empty"
    if any(isinstance(part, Text) and not part.text for part in message.parts):
        yield f"message {message.id} has an empty text"


def _check_answer(message: Message, before: Message | None, behind: Message | None) -> Iterable[str]:
    asked = [call.id for call in message.calls]
    answered: list[str] = []
    if behind is not None and behind.role == "tool":
        answered = [part.call_id for part in behind.parts if isinstance(part, ToolResult)]
    if asked != answered:
        yield f"message {message.id} asks for the calls {asked}; behind it are results of {answered}"
    if any(isinstance(part, ToolCall) and part.arguments is None for part in message.parts) and message.interrupted:
        yield f"message {message.id} keeps a call whose arguments were cut off"
    if before is not None and before.role == "assistant" and not before.interrupted:
        yield f"message {message.id} follows a finished answer"


def check_events(events: Iterable[Event], run: str) -> list[str]:
    """What is wrong with the events of one run; empty where the laws of the event stream hold.

    ``events`` is everything that a reader of the session saw, deltas or not; other runs are left out.
    """
    book = _Book(run)
    numbers: list[int] = []
    for event in events:
        if event.structural:
            numbers.append(event.seq)
        if event.origin.run == run:
            book.take(event)
    if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        book.problems.append(f"the numbers of structural events have a hole or a repeat: {numbers}")
    return book.close()


@attrs.define
class _Book:
    """What is open, as the events are read one by one."""

    run: str
    problems: list[str] = attrs.field(factory=list)
    count: int = 0
    ended: int = 0
    round: int | None = None
    message: str | None = None
    completed: set[str] = attrs.field(factory=set)
    calls: list[str] = attrs.field(factory=list)
    started: set[str] = attrs.field(factory=set)

    def take(self, event: Event) -> None:
        self.count += 1
        self._expect(self.count > 1 or isinstance(event, RunStarted), f"it begins with {type(event).__name__}")
        self._expect(not self.ended, f"{type(event).__name__} comes after RunEnded")
        match event:
            case RunStarted():
                self._expect(self.count == 1, "it starts twice")
            case RunEnded():
                self.ended += 1
                self._nothing_open("the run", rounds=True)
            case RoundStarted(round=number):
                self._expect(self.round is None, f"round {number} starts within another")
                self.round = number
            case RoundEnded(round=number):
                self._expect(self.round == number, f"round {number} ends, but {self.round} is open")
                self._nothing_open(f"round {number}")
                self.round = None
            case MessageStarted() | MessageCompleted() | MessageDiscarded():
                self._take_message(event)
            case CallProposed() | CallStarted() | CallFinished():
                self._take_call(event)
            case _:  # may come at any time
                pass

    def _take_message(self, event: MessageStarted | MessageCompleted | MessageDiscarded) -> None:
        match event:
            case MessageStarted(message_id=id):
                self._expect(self.message is None, f"message {id} starts within {self.message}")
                self._expect(self.round is not None, f"message {id} starts outside of a round")
                self.message = id
            case MessageCompleted(message=message):
                self._expect(self.message == message.id, f"{message.id} completes, but {self.message} is open")
                self.message = None
                self.completed.add(message.id)
            case MessageDiscarded(message_id=id):
                self._expect(self.message == id, f"{id} is discarded, but {self.message} is open")
                self._expect(id not in self.completed, f"{id} is discarded after its completion")
                self.message = None

    def _take_call(self, event: CallProposed | CallStarted | CallFinished) -> None:
        match event:
            case CallProposed(call=call):
                self._expect(self.message is None, f"call {call.id} is proposed before its message is complete")
                self.calls.append(call.id)
            case CallStarted(call_id=id):
                self._expect(id in self.calls and id not in self.started, f"call {id} starts out of turn")
                self.started.add(id)
            case CallFinished(result=result):
                first = self.calls[0] if self.calls else None
                self._expect(first == result.call_id, f"call {result.call_id} finishes before {first}")
                self.calls = [id for id in self.calls if id != result.call_id]

    def _nothing_open(self, what: str, *, rounds: bool = False) -> None:
        self._expect(self.message is None, f"{what} ends while message {self.message} is open")
        self._expect(not self.calls, f"{what} ends while calls are open: {self.calls}")
        self._expect(not rounds or self.round is None, f"{what} ends while round {self.round} is open")

    def _expect(self, holds: bool, problem: str) -> None:
        if not holds:
            self.problems.append(f"run {self.run}: {problem}")

    def close(self) -> list[str]:
        self._expect(self.ended == 1, f"it has {self.ended} endings in {self.count} events")
        return self.problems
