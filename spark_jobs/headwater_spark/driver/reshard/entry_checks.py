"""Read the entries of changelog topics before anything changes: which layout they have, where they are."""

from collections.abc import Iterator, Mapping, Sequence

from headwater.model.nodes import StateStore
from headwater.model.problems import Problem
from headwater_spark.driver.processor_move.checks import misplaced_key
from headwater_spark.driver.processor_move.entry_copy import BoundedKeys, Report, bounded_keys
from headwater_spark.driver.reshard import problems
from headwater_spark.driver.reshard.entry_move import WHOLE, ReshardCluster, Share
from headwater_spark.driver.reshard.plan import Reshard
from headwater_spark.engine.partitioners.hashing import UserPartitioner
from headwater_spark.engine.scaling.entry_layouts import EntryLayout, find_layouts
from headwater_spark.engine.scaling.transfers import Transfer
from headwater_spark.worker.partition_reader import RecordChunk

_SAMPLE = 20_000
"""So many records at the end of each partition show the layout of a store."""
_MORE = 10
"""So many times more records are read if there is no entry among them."""
_MAX_KEYS_IN_MEMORY = 1_000_000


def find_store_layout(
    cluster: ReshardCluster,
    store: StateStore,
    changelog: str,
    partitions: int,
    partitioner: UserPartitioner | None = None,
) -> tuple[EntryLayout, ...]:
    """Return the layouts that the newest entries of a changelog topic fit; raises `KafkaException`.

    If the newest records are all tombstones, more of them are read: without entries, any layout fits.
    """
    bounds = cluster.bounds((changelog, each) for each in range(partitions))
    records = _SAMPLE
    while True:
        samples = [
            (partition, _newest_entries(cluster, changelog, partition, (max(first, end - records), end)))
            for (_, partition), (first, end) in bounds.items()
        ]
        if any(keys for _, keys in samples) or all(first >= end - records for first, end in bounds.values()):
            return find_layouts(store.kind, samples, partitions, store.name, partitioner)
        records *= _MORE


def _newest_entries(
    cluster: ReshardCluster, changelog: str, partition: int, offsets: tuple[int, int]
) -> Sequence[bytes]:
    """Return the keys of the entries that exist among the records from the first offset up to the second."""
    first, end = offsets
    entries: dict[bytes, None] = {}
    for chunk in cluster.read_range(changelog, partition, first, end) if first < end else ():
        for index, key in enumerate(chunk.keys):
            if key is not None and chunk.value(index) is not None:
                entries[key] = None
            elif key is not None:
                entries.pop(key, None)
    return list(entries)


def check_entries(
    reshard: Reshard, cluster: ReshardCluster, report: Report, share: Share = WHOLE
) -> Sequence[Problem]:
    """Return a problem for each changelog topic with an entry that is not in the partition of its key.

    Only partitions of `share` are read.

    Raises `KafkaException`. At most a million keys are in memory; with more wrong ones, partitions are read
    again.
    """
    found: dict[str, Problem] = {}
    for transfer in reshard.transfers:
        reading = _Reading(transfer, cluster, report, share)
        for partition in filter(share.has, range(transfer.before)):
            if transfer.source not in found and (
                problem := _find_problem(reshard, transfer, partition, reading)
            ):
                found[transfer.source] = problem
    return list(found.values())


def _find_problem(
    reshard: Reshard, transfer: Transfer, partition: int, reading: "_Reading"
) -> Problem | None:
    if transfer.store is None:
        return None

    def owners(keys: Sequence[bytes | None]) -> Sequence[int]:
        old, _ = transfer.partitions(keys, partition)
        return old

    key = misplaced_key(owners, partition, lambda: reading.chunks(partition), _MAX_KEYS_IN_MEMORY)
    if key is not None:
        [owner] = owners([key])
        return problems.misplaced_entry(reshard.application, transfer.source, partition, owner)
    if transfer.left is not None and _is_misdirected(transfer, partition, reading):
        return problems.misdirected_subscription(reshard.application, transfer.source, has_begun=False)
    return None


def _is_misdirected(transfer: Transfer, partition: int, reading: "_Reading") -> bool:
    """Return whether an entry names a partition that is not the one of its left key."""
    wrong: BoundedKeys[None]
    for wrong in bounded_keys(_MAX_KEYS_IN_MEMORY):
        for chunk in reading.chunks(partition):
            old, _ = transfer.partitions(chunk.keys, partition)
            for record, owner in zip(chunk.records, old, strict=True):
                key, value = record[4], record[5]
                if key is None or owner != partition:
                    continue
                if transfer.is_misdirected(key, value):
                    wrong.put(key, None)
                else:
                    wrong.remove(key)
        if wrong.found:
            return True
    return False


class _Reading:
    """Reads the partitions of a changelog topic, and reports the progress."""

    def __init__(self, transfer: Transfer, cluster: ReshardCluster, report: Report, share: Share) -> None:
        self._topic = transfer.source
        self._cluster = cluster
        self._report = report
        bounds = cluster.bounds((self._topic, each) for each in range(transfer.before) if share.has(each))
        self._ends: Mapping[int, int] = {partition: end for (_, partition), (_, end) in bounds.items()}
        self._total = sum(end - first for first, end in bounds.values())
        self._done = 0

    def chunks(self, partition: int) -> Iterator[RecordChunk]:
        for chunk in self._cluster.read_range(self._topic, partition, 0, self._ends[partition]):
            yield chunk
            self._done += len(chunk)
            self._report(f"reading {self._topic}", self._done, max(self._done, self._total))
