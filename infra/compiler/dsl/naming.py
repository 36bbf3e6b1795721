"""Names: the index counter, the rules for users' names, which names carry an index (facts 1.1, 1.2)."""

import re

_LONGEST_NAME = 249
_LEGAL_NAME = re.compile(r"[A-Za-z0-9._-]+")
_INDEX = re.compile(r"-\d{10}")

REPARTITION_SUFFIX = "-repartition"
_GENERATED_STREAM_NAME = re.compile(r"KSTREAM.*-[0-9]{10}")


class Names:
    """The counter of one `StreamsBuilder`: it starts at 0 and serves processors and stores alike."""

    def __init__(self) -> None:
        self._next = 0
        self._generated: set[str] = set()

    def processor(self, prefix: str) -> str:
        """`newProcessorName`: the prefix and the next index."""
        name = f"{prefix}{self._next:010d}"
        self._next += 1
        self._generated.add(name)
        return name

    def store(self, prefix: str) -> str:
        """`newStoreName`."""
        return self.processor(prefix + "STATE-STORE-")

    def skip_index(self) -> None:
        """Pass over the index of a name that is generated and thrown away."""
        self._next += 1

    def given_or_next(self, given: str | None, prefix: str) -> str:
        """The user's name, which burns the index that the generated one would have had."""
        if given is None:
            return self.processor(prefix)
        self.skip_index()
        return given

    def carries_index(self, name: str) -> bool:
        """Whether `name` is, or starts with, a name that this counter made."""
        return any(name[: index.end()] in self._generated for index in _INDEX.finditer(name))


def name_error(name: str) -> str | None:
    """Why `Named` refuses a name, None when it accepts it."""
    if not name:
        return "it is empty"
    if name in {".", ".."}:
        return 'it is "." or ".."'
    if len(name) > _LONGEST_NAME:
        return f"it has {len(name)} characters, more than {_LONGEST_NAME}"
    if not _LEGAL_NAME.fullmatch(name):
        return "it has a character other than ASCII letters, digits, '.', '_' and '-'"
    return None


def repartition_topic(prefix: str) -> str:
    """The undecorated topic of a stream repartition: the suffix is not doubled."""
    return prefix if prefix.endswith(REPARTITION_SUFFIX) else prefix + REPARTITION_SUFFIX


def looks_generated(prefix: str) -> bool:
    """Whether a repartition of this prefix keeps its generated node names; a user's name may look so."""
    return _GENERATED_STREAM_NAME.fullmatch(prefix) is not None
