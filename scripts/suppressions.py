"""Count the comments that silence a tool, and fail when one lacks its code or its reason. Standard library only.

Good ones look like this, the reason in words behind the code:

    value = odd()  # type: ignore[no-any-return]  # the stub says Any, the documentation says str
    raise  # pragma: no cover - only reached when the disk is full
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("src", "tests", "examples", "benchmarks", "scripts", "docs")

# kind -> (how such a comment begins, the whole of a good one). Pragmas carry no code.
KINDS = {
    "type: ignore": (r"type:\s*ignore", r"type:\s*ignore\[[\w\-, ]+\]"),
    "pyright: ignore": (r"pyright:\s*ignore", r"pyright:\s*ignore\[[\w\-, ]+\]"),
    "noqa": (r"((ruff|flake8):\s*)?noqa\b", r"noqa:\s*[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*\b"),
    "pragma: no cover": (r"pragma:\s*no cover", r"pragma:\s*no cover"),
    "pragma: no branch": (r"pragma:\s*no branch", r"pragma:\s*no branch"),
}
WORD = re.compile(r"[^\W\d_]{2,}")
REASON_WORDS = 2  # fewer say nothing


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Line number and text of each comment; what only looks like one inside a string is passed over."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def judge(comment: str) -> tuple[list[str], str | None]:
    """The kinds of suppression in one comment, and what is wrong with it, if anything."""
    kinds, rest = [], comment
    for part in comment.split("#"):  # one comment may silence several tools
        for kind, (start, good) in KINDS.items():
            if re.match(start, part.strip(), re.IGNORECASE):
                kinds.append(kind)
                rest, found = re.subn(good, "", rest, flags=re.IGNORECASE)
                if not found:
                    return kinds, f"{kind} without a code"
    if kinds and len(WORD.findall(rest)) < REASON_WORDS:
        return kinds, f"{kinds[0]} without a reason"
    return kinds, None


def main() -> int:
    counts: Counter[str] = Counter()
    faults: list[str] = []
    for folder in FOLDERS:
        for path in sorted(Path(folder).rglob("*.py")):
            for line, comment in comments(path.read_text(encoding="utf-8")):
                kinds, fault = judge(comment)
                counts.update(kinds)
                if fault:
                    faults.append(f"{path}:{line}: {fault}: {comment}")
    print("suppressions:", ", ".join(f"{kind} {counts[kind]}" for kind in KINDS))
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
