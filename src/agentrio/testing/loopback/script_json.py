"""Scripts to JSON and back, and recorded files as replies. Reads files; opens no socket.

A script file is ``{"replies": [...], "repeat": false}`` or the list alone. A reply is an object with ``type``
``text``, ``calls``, ``raw`` or ``error`` and the fields of the class of that name, for example
``{"type": "text", "text": "Hello", "fault": {"stall_after": 3}}``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from operator import eq
from pathlib import Path

import cattrs
from cattrs.v import format_exception

from agentrio.testing.loopback.script import (
    CallsReply,
    ErrorReply,
    RawReply,
    Reply,
    Script,
    TextReply,
)

__all__ = ["load_recording", "load_recordings", "load_script", "script_from_json", "script_to_json"]

KINDS: dict[str, type[Reply]] = {"text": TextReply, "calls": CallsReply, "raw": RawReply, "error": ErrorReply}
NAMES: dict[type[Reply], str] = {kind: name for name, kind in KINDS.items()}
KEPT_HEADERS = ("retry", "x-should", "anthropic-ratelimit", "x-ratelimit", "request-id")


def load_script(path: Path) -> Script:
    """Read a script file. A reply that is not understood is a `ValueError` with its place and the reason."""
    return script_from_json(path.read_text(encoding="utf-8"))


def script_from_json(text: str) -> Script:
    """Read a script; errors as for `load_script`."""
    data = json.loads(text)
    if isinstance(data, list):
        data = {"replies": data}
    if not isinstance(data, dict) or not isinstance(data.get("replies"), list) or data.keys() - {"replies", "repeat"}:
        raise ValueError('a script is {"replies": [...], "repeat": false} or a list of replies')
    replies = [_reply(number, reply) for number, reply in enumerate(data["replies"], 1)]
    return Script(replies, repeat=bool(data.get("repeat", False)))


def script_to_json(script: Script) -> str:
    """Write a script so that `script_from_json` gives an equal one back, the bytes of raw bodies included."""
    replies = [{"type": NAMES[type(reply)], **_converter().unstructure(reply)} for reply in script.replies]
    return json.dumps({"replies": replies, "repeat": script.repeat})


def load_recordings(*paths: Path) -> Iterator[RawReply]:
    """Yield recorded files as replies: files as they are named, a folder's in the order of their names."""
    for path in paths:
        if path.is_dir():
            yield from (load_recording(file) for file in sorted(path.iterdir()) if _is_recording(file))
        else:
            yield load_recording(path)


def load_recording(path: Path) -> RawReply:
    """Read one recorded body, ``<case>.sse`` or ``<case>.json``.

    Where ``<case>.meta.json`` lies beside it, its ``http_status`` is used, and those of its ``response_headers`` that
    clients act on.
    """
    meta_path = path.with_name(f"{path.stem}.meta.json")
    meta = json.loads(meta_path.read_text(encoding="utf-8")) if meta_path.is_file() else {}
    headers = {
        name: str(value)
        for name, value in meta.get("response_headers", {}).items()
        if name.lower().startswith(KEPT_HEADERS)
    }
    content_type = "text/event-stream; charset=utf-8" if path.suffix == ".sse" else "application/json"
    status = int(meta.get("http_status", 200))
    return RawReply(path.read_bytes(), status=status, headers=headers, content_type=content_type)


def _is_recording(path: Path) -> bool:
    return path.suffix in {".sse", ".json"} and not path.name.endswith((".meta.json", ".expected.json"))


def _reply(number: int, data: object) -> Reply:
    if not isinstance(data, dict) or data.get("type") not in KINDS:
        raise ValueError(f"reply {number}: its type must be one of {', '.join(KINDS)}")
    fields = {key: value for key, value in data.items() if key != "type"}
    try:
        return _converter().structure(fields, KINDS[data["type"]])
    except (cattrs.BaseValidationError, TypeError, ValueError) as error:
        reasons = (
            "; ".join(cattrs.transform_error(error, format_exception=_say))
            if isinstance(error, BaseExceptionGroup)
            else str(error)
        )
        raise ValueError(f"reply {number}: {reasons}") from error


def _say(error: BaseException, kind: type | None) -> str:
    return str(error) if type(error) is ValueError else format_exception(error, kind)


@cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)  # a misspelt fault must not pass as no fault
    for kind, hook in HOOKS.items():
        converter.register_structure_hook_func(partial(eq, kind), hook)
    converter.register_structure_hook(bytes, lambda text, _: str(text).encode("utf-8", "surrogateescape"))
    converter.register_unstructure_hook(bytes, lambda body: body.decode("utf-8", "surrogateescape"))
    return converter


def _strings(value: object, _: object) -> str | Sequence[str]:
    # A plain text stays one: the reply's own converter cuts it.
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        return value
    raise ValueError("a text is a string or a list of strings")


def _optional_strings(value: object, kind: object) -> str | Sequence[str] | None:
    return None if value is None else _strings(value, kind)


def _arguments(value: object, _: object) -> object:
    if isinstance(value, str | dict):
        return value
    raise ValueError("arguments are an object, or raw JSON text as a string")


HOOKS: dict[object, Callable[[object, object], object]] = {
    tuple[str, ...]: _strings,
    tuple[str, ...] | None: _optional_strings,
    Mapping[str, object] | str: _arguments,
}
