"""The testing kit: what agentrio's own tests use, for the tests of those who build on it.

Names are imported when they are first used, so a test that wants a clock does not pay for a server. The fixtures are
in `agentrio.testing.plugin`, which pytest finds by itself where the package is installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentrio.testing.clock import HoldingClock
    from agentrio.testing.determinism import NotDeterministic, deterministic_schedule
    from agentrio.testing.everywhere import (
        PROBE,
        WAYS,
        CancelFailed,
        Failure,
        Report,
        Scenario,
        Stage,
        Tally,
        Way,
        cancel_everywhere,
        check_events,
        check_history,
        read_all,
        rehearsed,
    )
    from agentrio.testing.leaks import (
        DescriptorCounter,
        Leak,
        LeakCheck,
        LeakError,
        ProcessCounter,
        TaskCounter,
        ThreadCounter,
        no_leaks,
    )
    from agentrio.testing.loopback import (
        Call,
        CallsReply,
        ErrorReply,
        Exchange,
        Fault,
        LoopbackCrashed,
        ModelServer,
        Moment,
        Pace,
        ProcessModelServer,
        RawReply,
        Received,
        Reply,
        Script,
        TextReply,
        WireUsage,
        digest,
        load_recording,
        load_recordings,
        load_script,
        open_model_server,
        open_model_server_process,
        script_from_json,
        script_to_json,
    )

__all__ = [
    "PROBE",
    "WAYS",
    "Call",
    "CallsReply",
    "CancelFailed",
    "DescriptorCounter",
    "ErrorReply",
    "Exchange",
    "Failure",
    "Fault",
    "HoldingClock",
    "Leak",
    "LeakCheck",
    "LeakError",
    "LoopbackCrashed",
    "ModelServer",
    "Moment",
    "NotDeterministic",
    "Pace",
    "ProcessCounter",
    "ProcessModelServer",
    "RawReply",
    "Received",
    "Reply",
    "Report",
    "Scenario",
    "Script",
    "Stage",
    "Tally",
    "TaskCounter",
    "TextReply",
    "ThreadCounter",
    "Way",
    "WireUsage",
    "cancel_everywhere",
    "check_events",
    "check_history",
    "deterministic_schedule",
    "digest",
    "load_recording",
    "load_recordings",
    "load_script",
    "no_leaks",
    "open_model_server",
    "open_model_server_process",
    "read_all",
    "rehearsed",
    "script_from_json",
    "script_to_json",
]

# Where each name lives; a new part of the kit adds its room and names here, above, and in __all__.
_ROOMS = {
    "clock": ("HoldingClock",),
    "determinism": ("NotDeterministic", "deterministic_schedule"),
    "everywhere": (
        "PROBE",
        "WAYS",
        "CancelFailed",
        "Failure",
        "Report",
        "Scenario",
        "Stage",
        "Tally",
        "Way",
        "cancel_everywhere",
        "check_events",
        "check_history",
        "read_all",
        "rehearsed",
    ),
    "leaks": (
        "DescriptorCounter",
        "Leak",
        "LeakCheck",
        "LeakError",
        "ProcessCounter",
        "TaskCounter",
        "ThreadCounter",
        "no_leaks",
    ),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME.get(name, 'loopback')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
