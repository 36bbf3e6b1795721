"""Which tasks commit offsets without records."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

from headwater.kafka import Connection
from headwater_spark.driver.queries.uncommitted_input import UncommittedInput
from headwater_spark.worker.messages import BatchRequest, BatchResult

if TYPE_CHECKING:
    from headwater_spark.engine.program import SubtopologyProgram

_A0, _A1, _B0, _B1 = ("a", 0), ("a", 1), ("b", 0), ("b", 1)


def _request(**end_offsets: int) -> BatchRequest:
    """Return the request for a batch; `a0` is the end offset of partition 0 of topic a."""
    return BatchRequest(
        application="app",
        group="app",
        connection=Connection(bootstrap_servers=("localhost:9092",)),
        program=cast("SubtopologyProgram", None),
        state_folder=Path("state"),
        partition_counts={"a": 2, "b": 2},
        end_offsets={(name[0], int(name[1])): end for name, end in end_offsets.items()},
    )


def test_a_task_commits_the_end_of_records_that_were_deleted_before_the_start() -> None:
    """Retention has deleted all records after the committed offset: no record would ever reach the task."""
    uncommitted = UncommittedInput({_A0: 50, _A1: 5}, {_A0: 10})
    request = _request(a0=50, a1=5)
    assert uncommitted.count_new(request.end_offsets) == 0
    uncommitted.add(request, [])
    assert uncommitted.pending == {_A0: 50}
    assert uncommitted.tasks(request) == (0,)
    uncommitted.add(_request(a0=50), [BatchResult(partition=0)])
    assert not uncommitted.tasks(request)


def test_a_task_commits_the_end_of_records_that_were_deleted_while_the_query_runs() -> None:
    """No step reads them, so no request has their end."""
    uncommitted = UncommittedInput({_A0: 10, _A1: 5})
    uncommitted.skip_to({_A0: 50, _A1: 2})
    assert uncommitted.pending == {_A0: 50}
    assert uncommitted.ends == {_A0: 50, _A1: 5}
    assert uncommitted.tasks(_request()) == (0,)
    uncommitted.add(_request(a0=50), [BatchResult(partition=0)])
    assert not uncommitted.pending


def test_a_task_without_records_commits_what_was_read_for_it() -> None:
    uncommitted = UncommittedInput({_A0: 3, _A1: 5})
    request = _request(a0=10, a1=20)
    assert uncommitted.count_new(request.end_offsets) == 22
    uncommitted.add(request, [BatchResult(partition=0)])
    assert uncommitted.pending == {_A1: 20}
    assert uncommitted.tasks(request) == (1,)
    uncommitted.add(_request(a1=20), [BatchResult(partition=1)])
    assert not uncommitted.tasks(request)
    assert uncommitted.ends == {_A0: 10, _A1: 20}


def test_a_task_with_records_of_one_topic_commits_what_was_read_of_the_others() -> None:
    uncommitted = UncommittedInput({})
    request = _request(a0=10, b0=7)
    uncommitted.add(request, [BatchResult(partition=0)])
    assert not uncommitted.tasks(request)


def test_a_later_result_commits_only_the_end_offsets_of_its_batch() -> None:
    uncommitted = UncommittedInput({})
    uncommitted.add(_request(a0=10, b1=5), [])
    uncommitted.add(_request(b0=7), [BatchResult(partition=0)])
    assert uncommitted.pending == {_A0: 10, _B1: 5}
    assert uncommitted.tasks(_request()) == (0, 1)


def test_records_that_are_held_back_are_not_committed() -> None:
    uncommitted = UncommittedInput({})
    request = _request(a0=10, b0=7)
    uncommitted.add(request, [BatchResult(partition=0, read=4, held_back=(("a", 0, 3),))])
    assert not uncommitted.pending
    assert uncommitted.ends == {_A0: 3, _B0: 7}
    assert uncommitted.count_new({_A0: 12}) == 9
    assert uncommitted.is_due({_A0: 10}, 100.0)
    assert not uncommitted.is_due({_A0: 10}, 100.1), "they are still to be read"


def test_a_task_whose_records_are_all_held_back_has_committed_nothing() -> None:
    """Of the other topic, it has only read what reaches no task."""
    uncommitted = UncommittedInput({_A0: 2})
    uncommitted.add(_request(a0=10, b0=7), [BatchResult(partition=0, held_back=(("a", 0, 3),))])
    assert uncommitted.pending == {_B0: 7}
    assert uncommitted.ends == {_A0: 2, _B0: 7}
    uncommitted.add(_request(b0=7), [BatchResult(partition=0)])
    assert not uncommitted.pending


def test_a_task_whose_records_were_all_committed_before_has_committed_nothing() -> None:
    uncommitted = UncommittedInput({_A0: 10})
    uncommitted.add(_request(a0=10, b0=7), [BatchResult(partition=0, skipped=5)])
    assert uncommitted.pending == {_B0: 7}


def test_partitions_that_no_task_reads_yet_are_not_committed() -> None:
    uncommitted = UncommittedInput({})
    request = _request(a7=10)
    uncommitted.add(request, [])
    assert not uncommitted.tasks(request)


def test_tasks_commit_once_per_second_while_there_are_more_records() -> None:
    uncommitted = UncommittedInput({_B1: 5})
    uncommitted.add(_request(a0=10), [])
    ends = {_A0: 11, _B1: 5}
    assert uncommitted.is_due(ends, 100.0)
    assert not uncommitted.is_due(ends, 100.9)
    assert uncommitted.is_due(ends, 101.0)
    assert not uncommitted.is_due({_A0: 10, _B0: 1}, 101.1)


def test_tasks_commit_at_once_when_all_records_are_read() -> None:
    uncommitted = UncommittedInput({_B1: 5})
    uncommitted.add(_request(a0=10), [])
    assert uncommitted.is_due({_A0: 10, _B1: 5}, 100.0)
    assert uncommitted.is_due({_A0: 10, _B1: 5}, 100.1)


def test_partitions_that_have_not_advanced_are_idle() -> None:
    uncommitted = UncommittedInput({_A0: 3, _B0: 0}, {_A1: 2})
    uncommitted.add(_request(a0=10), [BatchResult(partition=0, read=7)])
    assert uncommitted.take_idle() == {_B0, _A1}
    assert uncommitted.take_idle() == {_A0, _B0, _A1}
    uncommitted.add(_request(a1=9, b0=4), [BatchResult(partition=0, read=4)])
    assert uncommitted.take_idle() == {_A0, _A1}, "the task of partition 1 has committed nothing"
