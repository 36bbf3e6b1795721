"""The journal of a reshard: what is committed for the partitions of its changelog topics.

No client of an application commits offsets of changelog topics. So the offsets that a reshard commits for
them in the application's group are its journal: it needs no further topic, and a transaction can change it
together with records. The offset of a partition is the end of its old part; the metadata say what is done.
"""

from collections.abc import Iterable, Mapping
from enum import Enum

import attrs

from headwater.model.offset_metadata import MoveMark, MovePhase, OffsetMetadata, decode_mark, decode_metadata
from headwater_spark.driver.processor_move.moves import Committed
from headwater_spark.driver.reshard.entry_totals import DIGEST_VERSION, EntryTotals
from headwater_spark.driver.reshard.plan import MOST_WRITERS, WRITERS
from headwater_spark.engine.records import Commits, Offsets, TopicPartition
from headwater_spark.engine.scaling.entry_layouts import LAYOUTS

_PHASE = "headwater.reshard.phase"
_OFFSETS = "headwater.reshard.offsets"
_ENTRIES, _DIGEST, _EXPIRING = (f"headwater.reshard.{name}" for name in ("entries", "digest", "expiring"))
_BEFORE, _AFTER = "headwater.reshard.before/", "headwater.reshard.after/"
_VERSION = "headwater.reshard.digest-version"
_STARTED = "headwater.reshard.started"
_LOCKED = "headwater.reshard.locked"
_WRITERS = "headwater.reshard.writers"
_ROUND = "headwater.reshard.round"
_WRITTEN = "headwater.reshard.written"
_OF_ROOT = (_OFFSETS, _STARTED)
_LAYOUT = "headwater.reshard.layout"
_LAYOUTS = tuple(LAYOUTS)
_PARTITIONER = "headwater.reshard.partitioner/"
_MOST_PARTITIONS = 1_000_000


class Phase(Enum):
    """What is done with a changelog topic: COPY and CLEAR are next, or DONE."""

    COPY = 0
    CLEAR = 1
    DONE = 2


@attrs.frozen
class Journal:
    """The state of a reshard that has begun.

    `counts` is topic → (before, after) of all topics. `ends` is changelog partition → the end of its old
    part. `totals` is changelog topic → what its partitions have when all entries are copied. `layouts` is
    changelog topic → name of its layout, if the document does not show it. `has_offsets`: unprocessed records
    are written, and offsets committed. `started_ms` is when the latest copy of entries began. `is_locked`:
    the application cannot start any more, and `ends` are final; before, it may still have written.
    `versions` is changelog topic → version of the digests in its totals; 0 = before there were versions.
    `partitioners` is input topic → checksum of the name of its partitioner, if it is a user's. `writers` is
    the largest number of processes or tasks that may have written; `round` is the number of the round in
    which tasks of Spark may write now (`WritingRound`). `written` is changelog topic → how many records its
    complete copy has written.
    """

    counts: Mapping[str, tuple[int, int]]
    ends: Offsets
    phases: Mapping[str, Phase]
    totals: Mapping[str, tuple[EntryTotals, ...]] = attrs.field(factory=dict)
    layouts: Mapping[str, str] = attrs.field(factory=dict)
    has_offsets: bool = False
    started_ms: int = 0
    is_locked: bool = False
    partitioners: Mapping[str, int] = attrs.field(factory=dict)
    versions: Mapping[str, int] = attrs.field(factory=dict)
    writers: int = WRITERS
    round: int = 0
    written: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def root(self) -> str:
        """The topic whose first partition has what belongs to all topics."""
        return min(self.phases)

    def commits(self, topic: str) -> Commits:
        """Return what to commit for the partitions of a topic."""
        before, after = self.counts.get(topic, (0, 0))
        totals = self.totals.get(topic, ())
        number = max(before, len(totals))
        return {
            (topic, partition): (
                self.ends.get((topic, partition), 0),
                self._commit_text(topic, partition, before, after, totals[partition] if totals else None),
            )
            for partition in range(number)
        }

    @property
    def all_commits(self) -> Commits:
        """What to commit for the partitions of all topics."""
        return {each: commit for topic in self.phases for each, commit in self.commits(topic).items()}

    @property
    def removal(self) -> Commits:
        """What to commit to remove the journal; brokers forget these offsets later."""
        return {partition: (offset, "") for partition, (offset, _) in self.all_commits.items()}

    def has_digests(self, topic: str) -> bool:
        """Return whether the digests of a topic are comparable with the digests of this version."""
        return self.versions.get(topic) == DIGEST_VERSION

    def ends_of(self, topic: str) -> Mapping[int, int]:
        """Return partition → the end of its old part."""
        before = self.counts[topic][0]
        return {partition: self.ends[topic, partition] for partition in range(before)}

    def _commit_text(
        self, topic: str, partition: int, before: int, after: int, totals: EntryTotals | None
    ) -> str:
        clocks: dict[str, int] = {_PHASE: self.phases[topic].value}
        if partition == 0 and topic in self.layouts:
            clocks[_LAYOUT] = _LAYOUTS.index(self.layouts[topic])
        if totals is not None and partition == 0:
            clocks[_VERSION] = self.versions.get(topic, 0)
            clocks[_WRITTEN] = self.written.get(topic, 0)
        if totals is not None:
            clocks |= {_ENTRIES: totals.entries, _DIGEST: totals.digest, _EXPIRING: totals.expiring}
        if (topic, partition) == (self.root, 0):
            clocks |= {_OFFSETS: int(self.has_offsets), _STARTED: self.started_ms}
            clocks |= {_LOCKED: int(self.is_locked), _WRITERS: self.writers, _ROUND: self.round}
            clocks |= {f"{_PARTITIONER}{name}": number for name, number in self.partitioners.items()}
            for name, (old, new) in self.counts.items():
                clocks |= {f"{_BEFORE}{name}": old, f"{_AFTER}{name}": new}
        phase = MovePhase.COPY if self.phases[topic] is Phase.COPY else MovePhase.CLEAR
        # The runtime reads it as the mark of a move, with which it does not start.
        return OffsetMetadata(0, clocks).encode(-1, mark=MoveMark(phase, before, after))


def read_journal(committed: Mapping[TopicPartition, Committed]) -> Journal | None:
    """Return the journal in what is committed for the changelog topics; None = no reshard has begun.

    Raises:
        ValueError: It is not complete: another program has committed it.
    """
    clocks = {each: _read_clocks(found.text) for each, found in committed.items()}
    root = next((each for each in clocks.values() if _OFFSETS in each), None)
    if root is None:
        if any(_PHASE in clocks[each] and _is_of_reshard(found.text) for each, found in committed.items()):
            raise ValueError("parts of the journal are missing")
        return None
    if not set(_OF_ROOT) <= root.keys():
        raise ValueError("parts of the journal are missing")
    befores = _clocks_with_prefix(root, _BEFORE)
    counts = {name: (before, root.get(f"{_AFTER}{name}", 0)) for name, before in befores.items()}
    if any(not 1 <= before <= after <= _MOST_PARTITIONS for before, after in counts.values()):
        raise ValueError("the journal has impossible partition counts")
    writers = root.get(_WRITERS, WRITERS)  # earlier versions had always the same number
    if not 0 <= writers <= MOST_WRITERS:
        raise ValueError("the journal has an impossible number of writers")
    phases = {
        topic: Phase(clocks[topic, partition][_PHASE])
        for topic, partition in committed
        if partition == 0 and _PHASE in clocks[topic, partition]
    }
    if not phases or not phases.keys() <= counts.keys():
        raise ValueError("the journal has no topics, or unknown ones")
    numbers = {topic: clocks[topic, 0].get(_LAYOUT) for topic in phases}
    if any(number is not None and not 0 <= number < len(_LAYOUTS) for number in numbers.values()):
        raise ValueError("the journal has unknown layouts")
    ends = {
        (topic, partition): found.offset or 0
        for (topic, partition), found in committed.items()
        if topic in phases and partition < counts[topic][0]
    }
    copied = [topic for topic in phases if _ENTRIES in clocks.get((topic, 0), {})]
    return Journal(
        counts,
        ends,
        phases,
        {topic: _read_totals(clocks, topic, counts[topic][1]) for topic in copied},
        layouts={topic: _LAYOUTS[number] for topic, number in numbers.items() if number is not None},
        has_offsets=bool(root[_OFFSETS]),
        started_ms=root[_STARTED],
        is_locked=bool(root.get(_LOCKED, 1)),  # earlier versions did not lock
        partitioners=_clocks_with_prefix(root, _PARTITIONER),
        versions={topic: clocks[topic, 0].get(_VERSION, 0) for topic in copied},
        writers=writers,
        round=root.get(_ROUND, 0),
        written={topic: clocks[topic, 0].get(_WRITTEN, 0) for topic in copied},
    )


def read_round(text: str) -> int | None:
    """Return the number of the present round, from what is committed for the first partition of the root."""
    return _read_clocks(text).get(_ROUND)


def journal_partitions(counts: Mapping[str, int]) -> Iterable[TopicPartition]:
    """Return the partitions of changelog topics with these counts."""
    return [(topic, partition) for topic, count in sorted(counts.items()) for partition in range(count)]


def _is_of_reshard(text: str) -> bool:
    """Return whether a mark is of a reshard; topics of an incomplete copy may be deleted one by one."""
    mark = decode_mark(text)
    return mark is not None and mark.before != mark.after


def _clocks_with_prefix(root: Mapping[str, int], prefix: str) -> Mapping[str, int]:
    """Return name → number of the clocks whose name begins with `prefix`."""
    return {name.removeprefix(prefix): number for name, number in root.items() if name.startswith(prefix)}


def _read_clocks(text: str) -> Mapping[str, int]:
    metadata = decode_metadata(text)
    return {} if metadata is None else metadata.clocks


def _read_totals(
    clocks: Mapping[TopicPartition, Mapping[str, int]], topic: str, count: int
) -> tuple[EntryTotals, ...]:
    found = [clocks.get((topic, partition), {}) for partition in range(count)]
    return tuple(
        EntryTotals(each.get(_ENTRIES, 0), each.get(_DIGEST, 0), each.get(_EXPIRING, 0)) for each in found
    )
