"""A model server on loopback: scripted or replaying, failing as told, with a record of what it saw and when."""

from agentrio.testing.loopback.process import ProcessModelServer, open_model_server_process
from agentrio.testing.loopback.record import Exchange, Moment, digest
from agentrio.testing.loopback.script import (
    Call,
    CallsReply,
    ErrorReply,
    Fault,
    Pace,
    RawReply,
    Received,
    Reply,
    Script,
    TextReply,
    WireUsage,
)
from agentrio.testing.loopback.script_json import (
    load_recording,
    load_recordings,
    load_script,
    script_from_json,
    script_to_json,
)
from agentrio.testing.loopback.server import LoopbackCrashed, ModelServer, open_model_server

__all__ = [
    "Call",
    "CallsReply",
    "ErrorReply",
    "Exchange",
    "Fault",
    "LoopbackCrashed",
    "ModelServer",
    "Moment",
    "Pace",
    "ProcessModelServer",
    "RawReply",
    "Received",
    "Reply",
    "Script",
    "TextReply",
    "WireUsage",
    "digest",
    "load_recording",
    "load_recordings",
    "load_script",
    "open_model_server",
    "open_model_server_process",
    "script_from_json",
    "script_to_json",
]
