"""Files that are text, for wires that take text alone."""

from __future__ import annotations

import base64

from agentrio.domain.parts import File


def file_text(file: File) -> str | None:
    """The text of a file; None where its data is no base64."""
    try:
        return base64.b64decode(file.data).decode("utf-8", "replace")
    except ValueError:
        return None


def left_out(file: File) -> str:
    """What a model is told of a file that it can't be shown."""
    return f"[file omitted: {file.name or 'unnamed'} ({file.media_type})]"


def told_as_text(file: File) -> str:
    """A text file under its name."""
    text = file_text(file)
    return left_out(file) if text is None else f"[File: {file.name or 'unnamed'}]\n{text}"
