"""Layouts of keys in changelog topics: which bytes of an entry's key are the key of the input record.

A document that is exported from code, or imported from a text, does not say what a store keeps. Its layout is
then found in its entries: with the right layout, each of them is in the partition of its record key. With a
wrong one, a share of `1 / partitions` is by chance.
"""

from collections.abc import Iterable, Mapping, Sequence

import attrs

from headwater.model.nodes import ChangelogKind
from headwater_spark.engine.partitioners.hashing import (
    PartitionerEndedError,
    PartitionerError,
    UserPartitioner,
)
from headwater_spark.engine.scaling.moved_stores import KeySlice, MovedStore
from headwater_spark.engine.scaling.transfers import positive_hashes

_LENGTH = 4
_CHANCE = 1e12
"""A layout is certain if entries fit it by chance in one of so many cases at most."""


@attrs.frozen
class EntryLayout:
    """The key of an entry has `before` bytes before the record key and `after` bytes after it.

    Source: `WindowKeySchema`, `SessionKeySchema`, `TimestampedKeyAndJoinSideSerializer`,
    `RocksDBTimeOrderedKeyValueBuffer` and `CombinedKeySchema` in `org.apache.kafka.streams`.
    """

    name: str
    before: int = 0
    after: int = 0
    is_subscription: bool = False
    """The key is `length of the foreign key ‖ foreign key ‖ left key`."""

    def fits(self, entry_key: bytes) -> bool:
        """Return whether the key is long enough, and has a valid length."""
        if not self.is_subscription:
            return len(entry_key) >= self.before + self.after
        return len(entry_key) >= _LENGTH and 0 <= _foreign_key_bytes(entry_key) <= len(entry_key) - _LENGTH

    def record_key(self, entry_key: bytes) -> bytes:
        """Return the key of the input record from the key of an entry that fits."""
        if self.is_subscription:
            return entry_key[_LENGTH : _LENGTH + _foreign_key_bytes(entry_key)]
        return entry_key[self.before : len(entry_key) - self.after]

    def moved_store(self, name: str, changelog: str) -> MovedStore:
        """Return the store whose entries have this layout."""
        key = self.record_key if self.is_subscription else KeySlice(self.before, self.after)
        return MovedStore(name, changelog, key, has_subscriptions=self.is_subscription, layout=self.name)


LAYOUTS: Mapping[str, EntryLayout] = {
    layout.name: layout
    for layout in (
        EntryLayout("key"),
        EntryLayout("windowed-key", after=8),
        EntryLayout("session", after=16),
        EntryLayout("window", after=12),
        EntryLayout("outer-join", before=9),
        EntryLayout("join-buffer", before=9, after=4),
        EntryLayout("subscription", is_subscription=True),
    )
}
"""Name → layout. `session` is also the layout of a key-value store with keys of session windows.

Journals of reshards have the numbers of layouts: add others at the end.
"""
_CANDIDATES: Mapping[ChangelogKind, tuple[str, ...]] = {
    ChangelogKind.KEY_VALUE: ("key", "windowed-key", "session", "outer-join", "join-buffer", "subscription"),
    ChangelogKind.WINDOWED: ("window", "session"),
    ChangelogKind.WINDOWED_DUPLICATES: ("window",),
    ChangelogKind.VERSIONED: ("key", "windowed-key"),
}
_STORE_NAME_ENDS: Mapping[str, tuple[str, ...]] = {
    "outer-join": ("-left-shared-join-store", "-outer-shared-join-store"),
    "subscription": ("-subscription-store",),
}
_STORE_NAME_BEGINNINGS: Mapping[str, tuple[str, ...]] = {
    "outer-join": ("KSTREAM-OUTERSHARED-",),
    "subscription": ("KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-",),
}
"""Layout → how the names end, or begin, that Kafka Streams gives to stores with it."""


def find_layouts(
    kind: ChangelogKind,
    entries: Iterable[tuple[int, Sequence[bytes]]],
    partitions: int,
    name: str = "",
    partitioner: UserPartitioner | None = None,
) -> tuple[EntryLayout, ...]:
    """Return the layouts that a store may have; exactly one = it is certain.

    Args:
        kind: Rules out some.
        entries: Partition → keys of entries that exist.
        partitions: The partition count of the changelog topic.
        name: The name of the store. Kafka Streams chooses some, or their ends, and with them the layout.
        partitioner: Chooses the partitions of record keys; None = Kafka's default one.

    Raises:
        PartitionerError: No layout fits most entries, and the partitioner has failed with the keys of one.
    """
    samples = [(partition, keys) for partition, keys in entries if keys]
    candidates = [LAYOUTS[name] for name in _CANDIDATES[kind]]
    if not samples:
        return tuple(candidates[:1])  # no entry has to move
    fitting, certain = [], False
    failure: PartitionerError | None = None
    for layout in candidates:
        try:
            found = _record_keys(layout, samples, partitions, partitioner)
        except PartitionerEndedError:
            raise
        except PartitionerError as error:
            # With a wrong layout, it gets bytes that are no key. The most usual layout is first.
            failure = failure or error
            continue
        if found is not None:
            fitting.append(layout)
            certain = certain or partitions ** min(len(found), 64) >= _CHANCE
    if not fitting and failure is not None:
        if any(_fits_most(layout, samples, partitions, partitioner) for layout in candidates):
            return ()  # some entries are misplaced: the partitioner failed with bytes that are no key
        raise failure
    named = [layout for layout in fitting if name.endswith(_STORE_NAME_ENDS.get(layout.name, ("\n",)))]
    named += [
        layout for layout in fitting if name.startswith(_STORE_NAME_BEGINNINGS.get(layout.name, ("\n",)))
    ]
    if named:
        return tuple(named[:1])
    if len(fitting) == 1 and not certain and len(candidates) > 1:
        return tuple(candidates)  # it may fit by chance
    return tuple(fitting)


def _record_keys(
    layout: EntryLayout,
    samples: Iterable[tuple[int, Sequence[bytes]]],
    partitions: int,
    partitioner: UserPartitioner | None,
) -> set[bytes] | None:
    """Return the record keys of all entries; None if an entry is not in the partition of its record key."""
    found: set[bytes] = set()
    for partition, keys in samples:
        if not all(map(layout.fits, keys)):
            return None
        record_keys = [layout.record_key(key) for key in keys]
        if any(owner != partition for owner in _find_owners(record_keys, partitions, partitioner)):
            return None
        found.update(record_keys)
    return found


def _fits_most(
    layout: EntryLayout,
    samples: Iterable[tuple[int, Sequence[bytes]]],
    partitions: int,
    partitioner: UserPartitioner | None,
) -> bool:
    """Return whether clearly more entries are in the partition of their record key than by chance."""
    right = total = 0
    for partition, keys in samples:
        if not all(map(layout.fits, keys)):
            return False
        try:
            owners = _find_owners([layout.record_key(key) for key in keys], partitions, partitioner)
        except PartitionerEndedError:
            raise
        except PartitionerError:
            return False
        right += sum(owner == partition for owner in owners)
        total += len(keys)
    return 2 * partitions * right > (partitions + 1) * total


def _find_owners(
    keys: Sequence[bytes], partitions: int, partitioner: UserPartitioner | None
) -> Sequence[int]:
    """Return the partition of each record key."""
    if partitioner is None:
        found: Sequence[int] = (positive_hashes(keys) % partitions).tolist()
        return found
    return partitioner.of_keys(keys, partitions)[0]


def _foreign_key_bytes(entry_key: bytes) -> int:
    return int.from_bytes(entry_key[:_LENGTH], "big", signed=True)
