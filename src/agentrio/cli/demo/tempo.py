"""How fast the demo is played."""

from __future__ import annotations

import attrs


@attrs.frozen
class Tempo:
    """Seconds: between two frames of the model's stream, for the quickest tool, and for the reader between scenes."""

    frame: float
    tool: float
    pause: float


NORMAL = Tempo(frame=0.03, tool=0.6, pause=1.5)
FAST = Tempo(frame=0.0, tool=0.02, pause=0.0)
