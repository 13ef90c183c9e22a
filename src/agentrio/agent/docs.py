"""What docstrings say of functions, classes and their parts."""

from __future__ import annotations

import enum

import docstring_parser


def document(thing: object) -> tuple[str, dict[str, str]]:
    """A function's or class's description, and what its ``Args:`` or ``Attributes:`` say of each name.

    Google, NumPy, reST and Epydoc styles are understood. The sections themselves are not part of the description.
    """
    text = thing.__dict__.get("__doc__") if isinstance(thing, type) else thing.__doc__
    if not isinstance(text, str) or (isinstance(thing, type) and _made_up(thing, text)):
        return "", {}
    parsed = docstring_parser.parse(text)
    paragraphs = (parsed.short_description, parsed.long_description)
    return (
        "\n\n".join(paragraph.strip() for paragraph in paragraphs if paragraph),
        {param.arg_name: " ".join(param.description.split()) for param in parsed.params if param.description},
    )


def _made_up(cls: type, text: str) -> bool:
    """Whether Python wrote the docstring itself, as it does for dataclasses and enums."""
    return text.startswith(f"{cls.__name__}(") or (issubclass(cls, enum.Enum) and text == "An enumeration.")
