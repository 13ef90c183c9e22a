"""What is said of a keyword that a call does not know: said alike everywhere, with the one that was meant."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from .errors import DeclarationError

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


def no_such(owner: str, keyword: str, known: Iterable[str]) -> str:
    """The sentence: who has no such keyword, and the near one, or else those that there are."""
    known = list(known)
    near = difflib.get_close_matches(keyword, known, 1)
    instead = f"did you mean {near[0]!r}?" if near else f"it knows {', '.join(known)}."
    return f"{owner} has no {keyword!r}; {instead}"


def tells_keywords(cls: C) -> C:
    """Class decorator: an unknown keyword raises a ``DeclarationError`` that names the one meant, and no TypeError."""
    type.__setattr__(cls, "__init__", keywords_told(vars(cls)["__init__"], cls.__name__))
    return cls


def keywords_told(function: F, owner: str | None = None) -> F:
    """The same for a function. A right call costs one frame more; the signature is looked at for a wrong one."""

    @functools.wraps(function)
    def told(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except TypeError as error:
            trace = error.__traceback__
            if trace is not None and trace.tb_next is not None:  # not the call: something in the function
                raise
            known = [name for name in inspect.signature(function).parameters if name != "self"]
            unknown = [keyword for keyword in keywords if keyword not in known]
            if not unknown:
                raise
            raise DeclarationError(no_such(owner or function.__name__, unknown[0], known)) from None

    return cast(F, told)
