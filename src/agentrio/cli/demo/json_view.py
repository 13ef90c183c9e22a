"""The demo for programs: one JSON line per event, then one with the server's record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import attrs

from agentrio.domain.codec import to_data
from agentrio.domain.events import Event
from agentrio.testing.loopback import Exchange

from .view import Scene, Stop


class JsonView:
    """Prints each event as the codec writes it. Scenes and notes are for people, and left out."""

    def __enter__(self) -> JsonView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def scene(self, scene: Scene) -> None:
        pass

    def event(self, event: Event) -> None:
        _print(to_data(event, Event))

    def note(self, text: str) -> None:
        pass

    def close(self, record: Sequence[Exchange], stops: Sequence[Stop]) -> None:
        _print(
            {
                "type": "server_record",
                "exchanges": [exchange.to_json() for exchange in record],
                "stops": [attrs.asdict(stop) for stop in stops],
            }
        )


def _print(data: Any) -> None:
    print(json.dumps(data, separators=(",", ":"), allow_nan=False), flush=True)
