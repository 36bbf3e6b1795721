"""KIP-287: a move of state is refused before anything changes."""

from contextlib import nullcontext

import attrs
import pytest

from headwater.model.offset_metadata import DELETING_KEY, OffsetMetadata
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater_spark.driver.processor_move.checks import (
    InputCheck,
    check_entries,
    check_input,
    count_unprocessed,
)
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.processor_move.moves import Committed, Move
from headwater_spark.engine.partitioners.hashing import default_partition
from headwater_spark.engine.scaling.moved_stores import MovedStore
from headwater_spark.engine.serdes import Subscription, subscription_serde
from headwater_spark.engine.serdes.plain import PLAIN
from tests.runtime.driver.counting_application import CHANGELOG, INPUT, KEYS, Application, doubled, execute


def refusal(app: Application, move: Move, code: ProblemCode = ProblemCode.UNPROCESSED_RECORDS) -> str:
    """Return the summary of the problem with which a move is refused; nothing has changed then."""
    before = dict(app.cluster.offsets), {name: len(each) for name, each in app.cluster.topics.items()}
    with pytest.raises(ProblemsError) as raised:
        execute(app.cluster, move)
    assert (
        dict(app.cluster.offsets),
        {name: len(each) for name, each in app.cluster.topics.items()},
    ) == before
    [problem] = raised.value.problems
    assert problem.code is code
    return problem.summary


def test_records_of_moving_keys_must_be_processed_first() -> None:
    app, move = doubled()
    key = next(key for key in KEYS if default_partition(key, 4) == 2)
    app.cluster.write([(INPUT, 0, key, b"", 1, ())])
    assert refusal(app, move).startswith("Partition 0 of in has a record at offset")


def test_processed_records_are_sampled_but_not_in_the_cut_of_an_expansion() -> None:
    app, move = doubled()
    key = next(key for key in KEYS if default_partition(key, 4) == 2)
    app.cluster.write([(INPUT, 3, key, b"", 1, ())])
    [(_, end)] = app.cluster.bounds([(INPUT, 3)]).values()
    app.cluster.offsets[INPUT, 3] = attrs.evolve(app.cluster.offsets[INPUT, 3], offset=end)
    assert refusal(app, move).startswith("Partition 3 of in has a record at offset")
    assert not InputCheck(move, app.cluster).problems(app.cluster.committed(move.partitions))


def test_a_cut_reads_each_unprocessed_record_once() -> None:
    """It waits until the last one that is not in the partition of its key is processed."""
    app, move = doubled()
    check, read = InputCheck(move, app.cluster), 0

    def problems() -> list[Problem]:
        return list(check.problems(app.cluster.committed(move.partitions)))

    def count() -> None:
        nonlocal read
        read += 1

    app.cluster.before_operation, app.cluster.chunk_records = count, 1
    key = next(key for key in KEYS if default_partition(key, 4) == 2)
    assert not problems()
    for number in range(1, 3):
        app.cluster.write([(INPUT, 0, key, b"", 1, ()), (INPUT, 2, key, b"", 1, ())])
        assert len(problems()) == 1
        assert len(problems()) == 1
        assert read == 2 * number
    [(_, end)] = app.cluster.bounds([(INPUT, 0)]).values()
    for offset, count_of_problems in ((end - 1, 1), (end, 0)):
        committed = app.cluster.offsets[INPUT, 0]
        app.cluster.offsets[INPUT, 0] = attrs.evolve(committed, offset=offset)
        assert len(problems()) == count_of_problems
    # A user has reset the offset to a record that was not read.
    app.cluster.offsets[INPUT, 0] = attrs.evolve(committed, offset=1)
    assert len(problems()) == 1


def test_unprocessed_records_of_their_partition_are_accepted() -> None:
    app, move = doubled()
    for each in KEYS:
        app.produce(each)
    execute(app.cluster, move)
    app.complete(4)
    app.process()
    assert app.counts == dict.fromkeys(KEYS, 3)


@pytest.mark.parametrize("partition", [0, 3])
def test_records_without_a_key_belong_to_no_processor(partition: int) -> None:
    app, move = doubled()
    app.cluster.write([(INPUT, partition, None, b"", 1, ())])
    committed = app.cluster.committed(move.partitions)
    check_input(move, app.cluster, committed, report_no_progress)
    assert not InputCheck(move, app.cluster).problems(committed)


def test_processed_records_of_an_added_partition_show_another_partitioner() -> None:
    app, move = doubled()
    key = next(key for key in KEYS if default_partition(key, 4) == 0)
    app.cluster.topics[INPUT][2].append((INPUT, 2, 1, 1, key, b"", ()))
    app.cluster.topics[INPUT][2].sort(key=lambda record: record[2])
    assert refusal(app, move).startswith("Partition 2 of in has a record at offset 1")


def test_an_offset_that_brokers_have_forgotten_is_refused() -> None:
    app, move = doubled()
    del app.cluster.offsets[INPUT, 1]
    assert refusal(app, move) == "No offset is committed for partition 1 of in, but it has records."


def test_keys_of_other_processors_are_refused() -> None:
    app, move = doubled()
    key = next(key for key in KEYS if default_partition(key, 2) == 1)
    app.cluster.write([(CHANGELOG, 0, key, b"1", 1, ())])
    assert refusal(app, move, ProblemCode.MISPLACED_ENTRIES) == (
        f"Partition 0 of {CHANGELOG} has an entry whose key belongs to processor 1."
    )


def test_each_store_with_keys_of_other_processors_is_reported() -> None:
    app, move = doubled()
    key = next(key for key in KEYS if default_partition(key, 2) == 1)
    other = "app-seen-changelog"
    app.cluster.topics[other] = [[], []]
    app.cluster.write([(CHANGELOG, 0, key, b"1", 1, ()), (other, 0, key, b"1", 1, ())])
    seen = MovedStore("seen", other, lambda key: key, is_keyed_by_user=True)
    part = attrs.evolve(move.parts[0], stores=(*move.parts[0].stores, seen))
    with pytest.raises(ProblemsError) as raised:
        execute(app.cluster, attrs.evolve(move, parts=(part,)))
    assert [problem.summary for problem in raised.value.problems] == [
        f"Partition 0 of {CHANGELOG} has an entry whose key belongs to processor 1.",
        "Store seen is not keyed by record: processor 0 has an entry whose key belongs to processor 1.",
    ]


def test_entries_that_an_earlier_move_has_deleted_are_not_misplaced() -> None:
    app, move = doubled()
    key = next(key for key in KEYS if default_partition(key, 2) == 1)
    app.cluster.write([(CHANGELOG, 0, key, b"1", 1, ()), (CHANGELOG, 0, key, None, 1, ())])
    execute(app.cluster, move)


def test_entries_that_a_task_has_yet_to_delete_are_not_misplaced() -> None:
    """An earlier move has moved their keys; the task deletes them while it processes records."""
    app, move = doubled()
    own, other = (next(key for key in KEYS if default_partition(key, 2) == each) for each in (0, 1))
    app.cluster.write([(CHANGELOG, 0, other, b"1", 1, ())])
    metadata = app.metadata(0)
    deleting = attrs.evolve(metadata, clocks={**metadata.clocks, DELETING_KEY: 1})
    for partition in (0, 2):
        committed = app.cluster.offsets[INPUT, partition]
        app.cluster.offsets[INPUT, partition] = attrs.evolve(committed, text=deleting.encode(partition))
    check_entries(move, app.cluster, app.cluster.committed(move.partitions), report_no_progress)
    app.cluster.write([(CHANGELOG, 1, own, b"1", 1, ())])
    with pytest.raises(ProblemsError, match=f"Partition 1 of {CHANGELOG} .* belongs to processor 0"):
        check_entries(move, app.cluster, app.cluster.committed(move.partitions), report_no_progress)


def test_each_misplaced_entry_is_found_with_one_key_in_memory() -> None:
    """An earlier move has deleted all others of its partition."""
    others = [key for key in KEYS if default_partition(key, 2) == 1]
    for kept in (*others, None):
        app, move = doubled()
        app.cluster.write([(CHANGELOG, 0, key, b"1", 1, ()) for key in others])
        app.cluster.write([(CHANGELOG, 0, key, None, 1, ()) for key in others if key != kept])
        committed = app.cluster.committed(move.partitions)
        with nullcontext() if kept is None else pytest.raises(ProblemsError, match="belongs to processor 1"):
            check_entries(move, app.cluster, committed, report_no_progress, most_keys=1)


def test_partitions_of_other_processors_are_refused() -> None:
    app, move = doubled()
    committed = app.cluster.offsets[INPUT, 2]
    app.cluster.offsets[INPUT, 2] = attrs.evolve(committed, text=OffsetMetadata(1).encode(0))
    assert refusal(app, move, ProblemCode.STATE_NOT_MOVABLE) == (
        "Partition 2 of in was processed by processor 2, which 2 processors do not assign it to."
    )


def test_unprocessed_subscriptions_are_refused_if_they_name_a_processor() -> None:
    app, move = doubled()
    part = attrs.evolve(move.parts[0], subscriptions=frozenset({INPUT}))
    move = attrs.evolve(move, parts=(part,))
    serde = subscription_serde(PLAIN["string"])
    subscriptions = Subscription(None, 1, "left", None, 0), Subscription(None, 1, "left", 1)
    for number, subscription in enumerate(subscriptions):
        key = KEYS[number]
        app.cluster.write([(INPUT, default_partition(key, 4), key, serde.serialize(subscription), 1, ())])
        if number == 0:
            check_input(move, app.cluster, app.cluster.committed(move.partitions), report_no_progress)
    assert refusal(app, move).endswith("has subscriptions that name a processor.")


def test_processed_subscriptions_may_name_a_processor() -> None:
    app, move = doubled()
    part = attrs.evolve(move.parts[0], subscriptions=frozenset({INPUT}))
    move = attrs.evolve(move, parts=(part,))
    key = next(key for key in KEYS if default_partition(key, 4) == 3)
    subscription = subscription_serde(PLAIN["string"]).serialize(Subscription(None, 1, "left", 1))
    app.cluster.write([(INPUT, 3, key, subscription, 1, ())])
    [(_, end)] = app.cluster.bounds([(INPUT, 3)]).values()
    app.cluster.offsets[INPUT, 3] = attrs.evolve(app.cluster.offsets[INPUT, 3], offset=end)
    check_input(move, app.cluster, app.cluster.committed(move.partitions), report_no_progress)
    app.cluster.offsets[INPUT, 3] = attrs.evolve(app.cluster.offsets[INPUT, 3], offset=end - 1)
    assert refusal(app, move).endswith("has subscriptions that name a processor.")


def test_records_that_were_deleted_do_not_count_as_unprocessed() -> None:
    """The cut of an expansion waits while many are unprocessed: it would wait until the next record."""
    app, move = doubled()
    assert count_unprocessed(move, app.cluster) == 0
    app.produce(KEYS[0])
    partition = default_partition(KEYS[0], 4)
    del app.cluster.topics[INPUT][partition][:-1]
    for committed in (Committed(), Committed(0)):
        app.cluster.offsets[INPUT, partition] = committed
        assert count_unprocessed(move, app.cluster) == 1


def test_the_check_of_the_input_reports_records() -> None:
    app, move = doubled()
    for _ in range(5):
        app.produce(KEYS[0])
    reported: list[tuple[int, int]] = []
    committed = app.cluster.committed(move.partitions)
    check_input(move, app.cluster, committed, lambda _, done, total: reported.append((done, total)))
    read = [done for done, _ in reported]
    assert read == sorted(set(read))
    assert len(read) > 2
    assert reported[-1][0] >= 5
