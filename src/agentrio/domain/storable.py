"""What a conversation must be so that it can be stored: looked at where one is opened, not where it is saved."""

from __future__ import annotations

from typing import Any

from .errors import CodecError
from .messages import Message
from .plain import NotPlain, article, plain_copy
from .session import Queued, Session


def check_session(session: Session) -> None:
    """Refuse a hand-made session that could not be stored. What is in its parts is not looked at.

    Raises:
        CodecError: its memory is no plain JSON, or it holds a list where a tuple belongs; the message says where.
    """
    try:
        _check_tuple(session.messages, Message, "messages")
        _check_tuple(session.queue, Queued, "queue")
        _check_tuple(session.shortened, str, "shortened")
        _check_tuple(tuple(item.message for item in session.queue), Message, "what waits in queue")
        for message in (*session.messages, *(item.message for item in session.queue)):
            if type(message.parts) is not tuple:
                raise NotPlain(f"the parts of message {message.id!r} are {article(message.parts)}, not a tuple")
        plain_copy(dict(session.memory), "memory")
    except NotPlain as wrong:
        raise CodecError(f"This session can't be opened, since it could not be stored: {wrong}") from None


def _check_tuple(value: Any, kind: type, name: str) -> None:
    if type(value) is not tuple or not all(isinstance(item, kind) for item in value):
        raise NotPlain(f"{name} is {article(value)}; it must be a tuple of {kind.__name__}")
