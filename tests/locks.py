"""Parts of the lock file of this repository."""

import re
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_LOCK = Path(__file__).parents[1] / "requirements" / "dev.txt"


def closure(names: Iterable[str], extra: str = "") -> set[str]:
    """Return `names` and the distributions that they require on this platform; `extra` is one of theirs."""
    found: set[str] = set()
    pending = [(canonicalize_name(name), extra) for name in names]
    while pending:
        name, own_extra = pending.pop()
        if name in found:
            continue
        found.add(name)
        for text in requires(name) or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": own_extra}):
                pending.append((canonicalize_name(needed.name), ""))
    return found


def locked(names: set[str]) -> str:
    """Return the entries of the lock for `names`, with hashes; fail if one is missing."""
    text = _LOCK.read_text(encoding="utf-8")
    entries: dict[str, str] = {}
    for entry in re.findall(r"^[a-zA-Z0-9].*\n(?: .*\n)*", text, re.MULTILINE):
        name = canonicalize_name(entry.partition("==")[0])
        entries[name] = entries.get(name, "") + entry  # versions of other versions of Python
    assert names <= set(entries), names - set(entries)
    return "".join(entries[name] for name in sorted(names))
