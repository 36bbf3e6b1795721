"""The index counter, the rules for users' names, and which names contain an index (facts 1.1, 1.2)."""

import re

_LONGEST_NAME = 249
_LEGAL_NAME = re.compile(r"[A-Za-z0-9._-]+")
_INDEX = re.compile(r"-\d{10}")

REPARTITION_SUFFIX = "-repartition"
_GENERATED_STREAM_NAME = re.compile(r"KSTREAM.*-[0-9]{10}")


class Names:
    """The index counter of one `InternalStreamsBuilder`: it starts at 0, for processors and stores."""

    def __init__(self) -> None:
        self._next = 0
        self._generated: set[str] = set()

    def processor(self, prefix: str) -> str:
        """Return the prefix with the next index (`InternalStreamsBuilder#newProcessorName`)."""
        name = f"{prefix}{self._next:010d}"
        self._next += 1
        self._generated.add(name)
        return name

    def store(self, prefix: str) -> str:
        """Return a store's name with the next index (`InternalStreamsBuilder#newStoreName`)."""
        return self.processor(prefix + "STATE-STORE-")

    def skip_index(self) -> None:
        """Take an index without a name: Kafka Streams generates a name that it does not use."""
        self._next += 1

    def given_or_next(self, given: str | None, prefix: str) -> str:
        """Return the user's name, or a generated one; both take an index."""
        if given is None:
            return self.processor(prefix)
        self.skip_index()
        return given

    def carries_index(self, name: str) -> bool:
        """Return whether `name` is or starts with a name that this counter generated."""
        return any(name[: index.end()] in self._generated for index in _INDEX.finditer(name))


def name_error(name: str) -> str | None:
    """Return why `Named#validate` rejects a name, None if it is valid."""
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
    """Return the repartition topic of a stream, without the application id; the suffix is not repeated."""
    return prefix if prefix.endswith(REPARTITION_SUFFIX) else prefix + REPARTITION_SUFFIX


def looks_generated(prefix: str) -> bool:
    """Return whether the nodes of a repartition with this prefix keep their generated names."""
    return _GENERATED_STREAM_NAME.fullmatch(prefix) is not None
