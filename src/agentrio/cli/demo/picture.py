"""The demo for people: what is finished scrolls by, what is under way is drawn at the bottom. Needs rich."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from agentrio.domain import events as ev
from agentrio.testing.loopback import Exchange

from .call_board import BAR, CallBoard
from .view import Scene, Stop

REDRAW = 0.04  # seconds between two drawings; each writes the whole moving part
WIDEST = 110  # cells; longer lines are hard to read
ENDINGS = {"sent": "sent whole", "client_closed": "client left", "open": "not yet"}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Let the error pass. rich would end the program here, beneath the tasks that are still open."""
        raise  # called while the BrokenPipeError is handled


class Picture:
    """Draws the demo on the terminal, or, where there is none, writes the same as plain lines."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = _Console(highlight=False) if console is None else console
        self._console.width = min(self._console.width, WIDEST)
        self._live: Live | None = None
        self._drawn = 0.0
        self._scenes = 0
        self._message = ""
        self._asks: dict[int, str] = {}
        self._board = CallBoard()

    def __enter__(self) -> Picture:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._settle()

    def scene(self, scene: Scene) -> None:
        """Announce a scene."""
        self._scenes += 1
        code = Text(scene.code, style="cyan")
        body = Group(Text(scene.about), Text(), code, Text(f"See {scene.example}.", style="dim"))
        self._console.print()
        self._console.print(Panel(body, title=f"{self._scenes}. {scene.title}", title_align="left", style="bold"))

    def note(self, text: str) -> None:
        """Say something in the narrator's voice."""
        self._say("note", text, "yellow")

    def event(self, event: ev.Event) -> None:
        """Show an event: some are drawn as they grow, some are one line, some show nothing."""
        match event:
            case ev.TextDelta():
                self._message += event.text
                self._draw(self._spoken())
            case ev.ToolInputDelta():
                self._asks[event.part] = self._asks.get(event.part, f"{event.name} ") + event.text
                self._draw(self._spoken())
            case ev.MessageAdded() | ev.MessageQueued() | ev.MessageCompleted():
                self._message_event(event)
            case ev.RunEnded():
                self._ended(event)
            case _:
                self._call_event(event)

    def _message_event(self, event: ev.MessageAdded | ev.MessageQueued | ev.MessageCompleted) -> None:
        match event:
            case ev.MessageAdded(source="prompt"):
                self._say("user ", event.message.text, "green")
            case ev.MessageAdded():
                self._say("user ", f"{event.message.text}  (the wish joins the conversation)", "green")
            case ev.MessageQueued():
                self._say("user ", f"{event.message.text}  (said while tools run: it waits)", "green")
            case ev.MessageCompleted():
                self._settle()
                self._console.print(self._spoken(cut=event.message.interrupted))
                self._message, self._asks = "", {}

    def _call_event(self, event: ev.Event) -> None:
        now = time.monotonic()
        match event:
            case ev.RoundStarted():
                self._board = CallBoard()
                return
            case ev.CallProposed():
                self._board.propose(event.call)
            case ev.CallStarted():
                self._board.start(event.call_id, now)
            case ev.CallProgress():
                self._board.tell(event.call_id, event.text, event.done, event.total)
            case ev.CallReturned():
                self._board.give_back(event.call_id, now, event.status)
            case ev.CallFinished():
                if self._board.finish(event.result.call_id, event.result.status):
                    self._calls_done(now)
                return
            case _:
                return
        self._draw(self._table(now))

    def _calls_done(self, now: float) -> None:
        self._settle()
        self._console.print(self._table(now))
        summary = self._board.summary()
        if summary:
            order = ", ".join(str((row.call.arguments or {}).get("city")) for row in self._board.rows.values())
            self.note(f"{summary} Their results go to the model in call order: {order}.")

    def _ended(self, event: ev.RunEnded) -> None:
        self._settle()
        result = event.result
        why = f" ({result.reason})" if result.reason else ""
        failure = f": {result.failure.message}" if result.failure and result.status != "cancelled" else ""
        style = {"succeeded": "bold green", "cancelled": "bold yellow"}.get(result.status, "bold red")
        self._say("run  ", f"{result.status}{why}{failure}", style)
        if result.status == "cancelled" and result.text:
            self.note(f"{len(result.text)} characters of the answer are kept in session.value.")

    def close(self, record: Sequence[Exchange], stops: Sequence[Stop]) -> None:
        """Show what the server saw, where it kept a record."""
        self._console.print()
        if record:
            self._show(record, stops)
        self._console.print("The same in your own code: README.md, docs/tutorial.md and examples/.")

    def _show(self, record: Sequence[Exchange], stops: Sequence[Stop]) -> None:
        seen = {stop.exchange: stop.seen_after for stop in stops}
        table = Table(title="What the model's server saw", title_justify="left", title_style="bold", expand=False)
        for heading in ("request", "connection", "frames sent", "ended", "seen after stop()"):
            table.add_column(heading, justify="left" if heading == "ended" else "right")
        for each in record:
            after = seen.get(each.number)
            left = "" if after is None else f"{after:.1f} ms"
            how = ENDINGS.get(each.ended or "open", each.ended)
            table.add_row(str(each.number), str(each.connection), str(each.frames_sent), how, left)
        self._console.print(table)

    # How things look

    def _spoken(self, *, cut: bool = False) -> RenderableType:
        shown = _lines()
        if self._message or not self._asks:
            shown.add_row(Text("model", style="blue"), Text(self._message + (" [stopped here]" if cut else "")))
        for asked in self._asks.values():
            shown.add_row(Text("model", style="blue"), Text(f"calls {asked}", style="magenta"))
        return shown

    def _table(self, now: float) -> RenderableType:
        shown = Table.grid(padding=(0, 1))
        for row in self._board.rows.values():
            name = f"{row.call.name}({', '.join(map(str, (row.call.arguments or {}).values()))})"
            bar = Text(self._board.bar(row, now).ljust(BAR), style="magenta", no_wrap=True)
            shown.add_row(Text("call", style="magenta"), Text(name), bar, Text(self._board.state(row, now)))
        return shown

    def _say(self, who: str, text: str, style: str) -> None:
        shown = _lines()
        shown.add_row(Text(who, style=style), Text(text, style=style))
        self._console.print(shown)

    # What is under way: drawn again and again at the bottom, and gone when it is settled

    def _draw(self, shown: RenderableType) -> None:
        if not self._console.is_terminal:
            return
        if self._live is None:
            self._live = Live(shown, console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        now = time.monotonic()
        self._live.update(shown, refresh=now - self._drawn >= REDRAW)
        if now - self._drawn >= REDRAW:
            self._drawn = now

    def _settle(self) -> None:
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()


def _lines() -> Table:
    """Lines of who speaks and what is said."""
    shown = Table.grid()
    shown.add_column(width=6)
    shown.add_column(ratio=1)
    return shown
