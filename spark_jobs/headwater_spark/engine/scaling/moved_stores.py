"""Which record key an entry of a changelog topic belongs to, and what changes when it moves (KIP-287).

The entries of keys that have moved to other processors are deleted, some with each batch (`MovedEntries`).
"""

from collections.abc import Callable, Sequence
from enum import Enum
from itertools import islice

import attrs

from headwater.model.behaviors import RunProcessor, TableTransformValues
from headwater.model.nodes import ProcessorNode, SourceNode, StateStore
from headwater.model.problems import Location
from headwater_spark.engine.program_interface import Program
from headwater_spark.engine.records import OutputRecord
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.engine.serdes.internal_topics import names_processor, without_processor
from headwater_spark.engine.stores.backend import BatchedState

_TIME, _SEQUENCE, _SIDE, _LENGTH = 8, 4, 1, 4
_WINDOW_BYTES = {"time": _TIME, "session": 2 * _TIME}
_AROUND_KEY: dict[str, tuple[int, int]] = {
    "keyValue": (0, 0),
    "timestampedKeyValue": (0, 0),
    "versionedKeyValue": (0, 0),
    "window": (0, _TIME + _SEQUENCE),
    "timestampedWindow": (0, _TIME + _SEQUENCE),
    "session": (0, 2 * _TIME),
    "list": (_TIME + _SIDE, 0),
    "suppress": (0, 0),
    "joinBuffer": (1 + _TIME, _SEQUENCE),
}
"""Kind of store → bytes before and after the key in a changelog entry's key (`stores`)."""
_SUBSCRIPTION = "subscription"

_KEYS_AT_ONCE = 10_000
"""So many keys are in memory, also if all entries of a store are checked by one batch."""
_READ_BY_KEY = frozenset({"keyValue", "timestampedKeyValue"})


class NotMovable(Enum):
    """Why the entries of a store cannot move."""

    NOT_LOGGED = "a store without a changelog topic of its own"
    ANY_KEYS = "a store of a user's processor, whose keys may be any, without `keyed: record`"
    WINDOWED_KEYS = "windowed keys in the store and in the input"


@attrs.frozen
class MovedStore:
    """A store whose entries can move. `counts` are the clocks that depend on which entries the task has."""

    name: str
    changelog: str
    record_key: Callable[[bytes], bytes]
    """Returns the key of the input record, from the key of an entry of the changelog topic."""
    counts: tuple[str, ...] = ()
    has_subscriptions: bool = False
    """Values are subscriptions of a foreign-key join, which may name a processor of the left table."""
    is_keyed_by_user: bool = False
    """A user's processor chooses the keys. The document declares that the input has the same keys."""
    at: Location | None = None
    layout: str | None = None
    """The name of the layout, if the entries or a user show it, not the document (`entry_layouts`)."""

    @property
    def is_join_buffer(self) -> bool:
        """Whether it keeps records of a join with a versioned table until their grace period is over."""
        return self.record_key == KeySlice(*_AROUND_KEY["joinBuffer"])

    def processor(self, entry_key: bytes, processors: Processors) -> int:
        """Return the processor of an entry."""
        return processors.owner_of_key(self.record_key(entry_key))

    def record_keys(self, entry_keys: Sequence[bytes]) -> Sequence[bytes]:
        """Return the keys of the input records of many entries."""
        if self.record_key == KeySlice(0, 0):
            return entry_keys
        return list(map(self.record_key, entry_keys))

    def is_outdated(self, value: bytes | None) -> bool:
        """Return whether a value names a processor: it has another number when the state has moved."""
        return self.has_subscriptions and value is not None and names_processor(value)

    def value(self, value: bytes | None) -> bytes | None:
        """Return the value of an entry for any number of processors."""
        return without_processor(value) if value is not None and self.is_outdated(value) else value


def moved_stores(
    program: Program,
) -> tuple[tuple[MovedStore, ...], tuple[tuple[StateStore, NotMovable], ...]]:
    """Return the stores of a sub-topology that can move, and (store, reason) for those that cannot."""
    movable, others = [], []
    own = _stores_of_operators(program)
    has_windowed_input = any(
        node.reads is not None and node.reads.format.key is not None and node.reads.format.key.window
        for node in program.nodes
        if isinstance(node, SourceNode)
    )
    for store in program.stores:
        if store.is_global:
            continue
        changelog, keeps = program.changelog(store.name), store.keeps
        window = keeps.format.key.window if keeps is not None and keeps.format.key is not None else None
        if changelog is None or keeps is None:
            others.append((store, NotMovable.NOT_LOGGED))
        elif store.name not in own and not keeps.keyed_by_record:
            others.append((store, NotMovable.ANY_KEYS))
        elif window is not None and has_windowed_input:
            others.append((store, NotMovable.WINDOWED_KEYS))
        elif keeps.kind == _SUBSCRIPTION:
            movable.append(MovedStore(store.name, changelog, _foreign_key, has_subscriptions=True))
        else:
            before, after = _AROUND_KEY[keeps.kind]
            key = KeySlice(before, after + (_WINDOW_BYTES[window] if window is not None else 0))
            is_buffer = keeps.kind == "suppress"
            counts = tuple(f"{store.name}/{what}" for what in ("records", "bytes") if is_buffer)
            movable.append(
                MovedStore(
                    store.name,
                    changelog,
                    key,
                    counts,
                    is_keyed_by_user=store.name not in own,
                    at=store.at,
                )
            )
    return tuple(movable), tuple(others)


def _stores_of_operators(program: Program) -> frozenset[str]:
    """Return the stores that operators of the DSL write; users' processors may read them, too."""
    found: set[str] = set()
    for node in program.nodes:
        if not isinstance(node, ProcessorNode) or isinstance(node.behavior, RunProcessor):
            continue
        if isinstance(node.behavior, TableTransformValues):
            found |= {node.behavior.store} if node.behavior.store is not None else set()
        else:
            found |= set(node.stores)
    return frozenset(found)


@attrs.frozen
class KeySlice:
    """Removes bytes at both ends of a key."""

    before: int
    after: int

    def __call__(self, entry_key: bytes) -> bytes:
        return entry_key[self.before : len(entry_key) - self.after]


def _foreign_key(entry_key: bytes) -> bytes:
    return entry_key[_LENGTH : _LENGTH + int.from_bytes(entry_key[:_LENGTH], "big")]


def can_delete_later(program: Program) -> bool:
    """Return whether entries of keys that a task does not read any more have no effect on its results.

    That holds if all stores are read by the keys of records only. Ranges are read to find closed windows,
    suppressed results, records without a partner, and the entries of users' processors.
    """
    users = {
        store
        for node in program.nodes
        if isinstance(node, ProcessorNode) and isinstance(node.behavior, RunProcessor | TableTransformValues)
        for store in node.stores
    }
    return all(
        _is_read_by_key(store) and store.name not in users for store in program.stores if not store.is_global
    )


class MovedEntries:
    """The entries of one task whose keys belong to other processors.

    `can_delete_later` holds for the `stores` of the sub-topology.
    """

    def __init__(
        self, stores: Sequence[MovedStore], state: BatchedState, processor: int, processors: Processors
    ) -> None:
        self._left = list(stores)
        self._start = b""
        self._state = state
        self._processor = processor
        self._processors = processors

    @property
    def are_deleted(self) -> bool:
        return not self._left

    def delete(self, most: int, wall_clock_ms: int) -> list[OutputRecord]:
        """Delete those among the next `most` entries in the running batch; return their changelog records."""
        tombstones: list[OutputRecord] = []
        while self._left and most > 0:
            store = self._left[0]
            entries = self._state.store(store.name)
            size = min(most, _KEYS_AT_ONCE)
            keys = [key for key, _ in islice(entries.range(self._start), size)]
            for key in keys:
                if store.processor(key, self._processors) != self._processor:
                    entries.delete(key)
                    tombstones.append((store.changelog, self._processor, key, None, wall_clock_ms, ()))
            if len(keys) < size:
                self._left.pop(0)
                self._start = b""
            else:
                self._start = keys[-1] + b"\0"
            most -= len(keys)
        return tombstones


def _is_read_by_key(store: StateStore) -> bool:
    keeps = store.keeps
    if keeps is None or keeps.kind not in _READ_BY_KEY:
        return False
    return keeps.format.key is None or keeps.format.key.window is None
