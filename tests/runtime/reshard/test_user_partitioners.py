"""Reshards of applications whose records a user's function places, on a cluster in memory."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pytest

from headwater.compiler import compile_document
from headwater.model.nodes import ChangelogKind, StateStore
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.spec import load_text
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.processor_move.moves import Committed
from headwater_spark.driver.reshard.checks import check_reshard, find_journal, unchecked_partitioners
from headwater_spark.driver.reshard.entry_checks import check_entries, find_store_layout
from headwater_spark.driver.reshard.execution import ReshardExecution
from headwater_spark.driver.reshard.journal import Phase
from headwater_spark.driver.reshard.start import ReshardOptions, plan_from_cluster
from headwater_spark.engine.partitioners.hashing import PartitionerError, UserPartitioner, default_partition
from tests.runtime.driver.memory_move import KilledError
from tests.runtime.reshard.memory_reshard import ReshardMemoryCluster

_TIME = 1_760_000_000_000
_STEPS = [
    {"stream": {"topic": "orders"}},
    {"groupByKey": {}},
    {"count": {"materialized": "totals"}},
]
_CHANGELOG = "app-totals-changelog"
(_DOCUMENT,) = load_text(json.dumps({"application": {"id": "app"}, "topology": _STEPS}), "app.yaml").documents
_KEYS = [b"%03d %s" % (number, name) for number in range(40) for name in (b"a", b"bb")]
_REGION = UserPartitioner("app.parts:region", lambda key, count: int(key[:3]) % count)
"""All keys of a region, their first three characters, are in one partition."""
_SHIFTED = UserPartitioner("app.parts:shifted", lambda key, count: (int(key[:3]) + 1) % count)


@pytest.fixture
def cluster() -> ReshardMemoryCluster:
    """Return a cluster with an application of two partitions that has processed its input."""
    cluster = ReshardMemoryCluster({topic: [[], []] for topic in ("orders", _CHANGELOG)})
    for key in _KEYS:
        partition = _REGION(key, 2)
        cluster.write([(topic, partition, key, b"1", _TIME, ()) for topic in cluster.topics])
    for partition, records in enumerate(cluster.topics["orders"]):
        cluster.offsets["orders", partition] = Committed(records[-1][2] + 1)
    assert compile_document(_DOCUMENT, {"orders": 2}).internal_topics[0].name == _CHANGELOG
    return cluster


def _reshard(
    cluster: ReshardMemoryCluster,
    partitioners: Mapping[str, UserPartitioner],
    unchecked: frozenset[str] = frozenset(),
    rewritten: frozenset[str] = frozenset(),
) -> None:
    counts = {topic: len(partitions) for topic, partitions in cluster.topics.items()}
    journal = find_journal(_DOCUMENT, counts, cluster)
    options = ReshardOptions(partitions={"orders": 5}, partitioners=partitioners, rewritten=rewritten)
    reshard = plan_from_cluster(_DOCUMENT, counts, options, journal, cluster)
    if journal is None:
        found = [*check_reshard(reshard, cluster), *unchecked_partitioners(reshard, cluster, unchecked)]
        found += check_entries(reshard, cluster, report_no_progress)
        if found:
            raise ProblemsError(found)
    if reshard.transfers:
        ReshardExecution(reshard, cluster, {}, journal, report_no_progress, check_stopped=lambda: None).run()


def _entries(cluster: ReshardMemoryCluster) -> Mapping[bytes | None, int]:
    """Return key → partition of the entries; fail if a key is in two partitions."""
    found: dict[bytes | None, int] = {}
    for partition, records in enumerate(cluster.topics[_CHANGELOG]):
        last = {record[4]: record[5] for record in records}
        for key, value in last.items():
            if value is not None:
                assert key not in found
                found[key] = partition
    return found


@pytest.mark.parametrize("kills", [(), (20,), (40, 30, 60, 40)])
def test_each_entry_moves_to_the_partition_of_the_function(
    cluster: ReshardMemoryCluster, kills: tuple[int, ...]
) -> None:
    for operations in kills:
        cluster.kill_after(operations)
        with suppress(KilledError):
            _reshard(cluster, {"orders": _REGION})
    cluster.kill_after(None)
    _reshard(cluster, {"orders": _REGION})
    assert _entries(cluster) == {key: _REGION(key, 5) for key in _KEYS}
    assert [cluster.offsets["orders", each].offset for each in range(2, 5)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("partitioners", "summary"),
    [
        ({}, "has an entry whose key belongs to partition"),
        ({"orders": _SHIFTED}, "has an entry whose key belongs to partition"),
    ],
)
def test_a_wrong_partitioner_is_found_in_the_entries(
    cluster: ReshardMemoryCluster, partitioners: Mapping[str, UserPartitioner], summary: str
) -> None:
    with pytest.raises(ProblemsError, match=summary):
        _reshard(cluster, partitioners)
    assert len(cluster.topics[_CHANGELOG]) == 2


@pytest.mark.parametrize("partitioners", [{}, {"orders": _SHIFTED}])
def test_an_interrupted_reshard_is_completed_with_its_partitioner_only(
    cluster: ReshardMemoryCluster, partitioners: Mapping[str, UserPartitioner]
) -> None:
    cluster.kill_after(70)
    with pytest.raises(KilledError):
        _reshard(cluster, {"orders": _REGION})
    cluster.kill_after(None)
    with pytest.raises(ProblemsError, match="has begun with other partitioners for orders"):
        _reshard(cluster, partitioners)
    _reshard(cluster, {"orders": _REGION})
    assert _entries(cluster) == {key: _REGION(key, 5) for key in _KEYS}


def _phase(cluster: ReshardMemoryCluster) -> Phase | None:
    counts = {topic: len(partitions) for topic, partitions in cluster.topics.items()}
    journal = find_journal(_DOCUMENT, counts, cluster)
    return None if journal is None else journal.phases[_CHANGELOG]


def _changed(before: int, after: int) -> UserPartitioner:
    """Return `_REGION` after an edit: with these numbers added to the partitions of region 7."""

    def place(key: bytes, count: int) -> int:
        is_changed = key.startswith(b"007")
        return (int(key[:3]) + is_changed * (before if count == 2 else after)) % count

    return UserPartitioner(_REGION.name, place)


@pytest.mark.parametrize(
    ("phase", "changed"),
    [
        pytest.param(Phase.COPY, _changed(1, 0), id="copy, at the old count"),
        pytest.param(Phase.CLEAR, _changed(0, 1), id="clear, at the new count"),
        pytest.param(Phase.DONE, _changed(0, 1), id="done, at the new count"),
    ],
)
def test_a_partitioner_that_has_changed_does_not_complete_an_interrupted_reshard(
    cluster: ReshardMemoryCluster, phase: Phase, changed: UserPartitioner
) -> None:
    def kill_in_phase() -> None:
        if _phase(cluster) is phase and len(cluster.topics[_CHANGELOG]) == 5:
            raise KilledError

    cluster.before_operation = kill_in_phase
    with pytest.raises(KilledError):
        _reshard(cluster, {"orders": _REGION})
    cluster.kill_after(None)
    for _ in range(2):
        with pytest.raises(ProblemsError, match="are not in the partitions that the partitioner"):
            _reshard(cluster, {"orders": changed})
    assert _phase(cluster) is phase
    _reshard(cluster, {"orders": _REGION})
    assert _entries(cluster) == {key: _REGION(key, 5) for key in _KEYS}


def test_the_partitions_of_unprocessed_records_are_requested_together(cluster: ReshardMemoryCluster) -> None:
    requests: list[int] = []

    def of_many(keys: Sequence[bytes], counts: Sequence[int]) -> Sequence[Sequence[int]]:
        requests.append(len(keys))
        return [[_REGION(key, count) for key in keys] for count in counts]

    def of_one(key: bytes, count: int) -> int:
        raise AssertionError(f"{key!r} was requested alone, at {count} partitions")

    cluster.chunk_records = 1000
    cluster.offsets = {each: Committed(0) for each in cluster.offsets}
    together = UserPartitioner("com.acme.Region", of_one, of_many)
    _reshard(cluster, {"orders": together}, rewritten=frozenset({"orders"}))
    assert max(requests) == len(_KEYS)
    assert len(requests) < 30

    for partition, records in enumerate(cluster.topics["orders"]):
        own = [record[4] for record in records[-sum(_REGION(key, 5) == partition for key in _KEYS) :]]
        assert all(key is not None and _REGION(key, 5) == partition for key in own)


def _of_one_partition(keys: Sequence[bytes]) -> ReshardMemoryCluster:
    cluster = ReshardMemoryCluster({topic: [[]] for topic in ("orders", _CHANGELOG)})
    for key in keys:
        cluster.write([(topic, 0, key, b"1", _TIME, ()) for topic in cluster.topics])
    cluster.offsets["orders", 0] = Committed(
        max((record[2] for record in cluster.topics["orders"][0]), default=-1) + 1
    )
    return cluster


def test_entries_of_one_partition_do_not_show_that_a_partitioner_is_right() -> None:
    cluster = _of_one_partition(_KEYS)
    with pytest.raises(ProblemsError) as raised:
        _reshard(cluster, {"orders": _REGION})
    [problem] = raised.value.problems
    assert (problem.code, problem.topic) == (ProblemCode.RESHARD_REFUSED, "orders")
    assert problem.fix.endswith("Then add `--unchecked-partitioner orders`.")
    assert [len(partitions) for partitions in cluster.topics.values()] == [1, 1]
    _reshard(cluster, {"orders": _REGION}, frozenset({"orders"}))
    assert _entries(cluster) == {key: _REGION(key, 5) for key in _KEYS}


def test_records_of_one_partition_that_are_written_again_do_not_show_it_either() -> None:
    cluster = _of_one_partition([])
    cluster.write([("orders", 0, key, b"1", _TIME, ()) for key in _KEYS])
    cluster.offsets["orders", 0] = Committed(0)
    with pytest.raises(ProblemsError) as raised:
        _reshard(cluster, {"orders": _REGION}, rewritten=frozenset({"orders"}))
    assert [problem.topic for problem in raised.value.problems] == ["orders"]
    assert "--unchecked-partitioner orders" in raised.value.problems[0].fix


def test_one_partition_without_entries_needs_no_confirmation() -> None:
    _reshard(_of_one_partition([]), {"orders": _REGION})


def test_processed_records_that_stay_where_they_are_need_no_confirmation() -> None:
    cluster = _of_one_partition([])
    cluster.write([("orders", 0, key, b"1", _TIME, ()) for key in _KEYS])
    cluster.offsets["orders", 0] = Committed(cluster.topics["orders"][0][-1][2] + 1)
    _reshard(cluster, {"orders": _REGION})
    assert [len(partitions) for partitions in cluster.topics.values()] == [5, 5]


def test_the_default_partitioner_needs_no_confirmation() -> None:
    cluster = _of_one_partition(_KEYS)
    _reshard(cluster, {})
    assert _entries(cluster) == {key: default_partition(key, 5) for key in _KEYS}


@pytest.mark.parametrize("of_many", [False, True], ids=["function", "class of Java"])
def test_a_misplaced_entry_is_no_failure_of_the_partitioner(
    cluster: ReshardMemoryCluster, *, of_many: bool
) -> None:
    """With wrong layouts, it fails with bytes that are no key; with the right one, most entries fit."""

    def by_text(key: bytes, count: int) -> int:
        return int(key.decode().split()[1]) % count

    def of_all(keys: Sequence[bytes], counts: Sequence[int]) -> Sequence[Sequence[int]]:
        try:
            return [[by_text(key, count) for key in keys] for count in counts]
        except (IndexError, ValueError) as error:
            raise PartitionerError("app.parts:text", "it failed") from error

    partitioner = UserPartitioner("app.parts:text", by_text, of_many=of_all if of_many else None)
    store = StateStore("counts", ChangelogKind.KEY_VALUE)
    keys = [b"name %d" % number for number in range(60)]
    cluster.topics[_CHANGELOG] = [[], []]
    cluster.write((_CHANGELOG, by_text(key, 2), key, b"1", _TIME, ()) for key in keys)
    cluster.write([(_CHANGELOG, 0, b"name 1001", b"1", _TIME, ())])

    assert find_store_layout(cluster, store, _CHANGELOG, 2, partitioner) == ()


def test_a_partitioner_shows_the_layout_of_a_store(cluster: ReshardMemoryCluster) -> None:
    """With a wrong layout, the function gets bytes that are no key."""
    by_text = UserPartitioner("app.parts:text", lambda key, count: int(key.decode().split()[0]) % count)
    store = StateStore("closed", ChangelogKind.KEY_VALUE)
    keys = [b"name %d" % number for number in range(60)]
    last = UserPartitioner("app.parts:last", lambda key, count: int(key.decode("ascii").split()[1]) % count)
    cluster.topics[_CHANGELOG] = [[], []]
    windowed = [(key, key + b"\xff" * 8) for key in keys]
    cluster.write((_CHANGELOG, last(key, 2), entry, b"1", _TIME, ()) for key, entry in windowed)
    with pytest.raises(PartitionerError, match=r"app\.parts:text: UnicodeDecodeError"):
        find_store_layout(cluster, store, _CHANGELOG, 2, by_text)
    other = UserPartitioner("app.parts:other", lambda key, count: len(key) % count)
    assert find_store_layout(cluster, store, _CHANGELOG, 2, other) == ()
    found = find_store_layout(cluster, store, _CHANGELOG, 2, last)
    assert [layout.name for layout in found] == ["windowed-key"]
