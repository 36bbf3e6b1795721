"""A task's batches against a broker in memory: what is committed, and what the next owner finds."""

import base64
from pathlib import Path

import attrs
import pytest

from headwater_spark.processors import Processor, ProcessorContext, Record
from headwater_spark.worker.messages import BatchRequest, BatchResult
from headwater_spark.worker.task_batch import OpenTask
from headwater_spark.worker.task_input import RecordInput
from tests.runtime.worker.memory_broker import IN, Broker, batch_request, process

PRINTED = """
application: {id: printed}
topology:
  - stream: {topic: in, as: read, serdes: {key: string, value: json}}
  - print: {from: read}
  - to: {from: read, topic: out, serdes: {key: string, value: json}}
"""

NOT_CLOSED = f"""
application: {{id: not-closed}}
topology:
  - stream: {{topic: in, serdes: {{key: string, value: string}}}}
  - process: {{class: "{__name__}:NotClosed", stores: [{{name: seen, kind: keyValue}}]}}
"""


def test_half_of_a_surrogate_pair_can_be_printed(
    broker: Broker, request_: BatchRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    request = batch_request(PRINTED, request_.state_folder)
    input_ = RecordInput([(*IN, 0, 1_000, b"a", rb'"x\ud800"', ())])
    result = OpenTask(request, 0).process_batch(request, input_, tick=False)
    assert result.written == 1
    captured = capsys.readouterr()
    assert "\\ud800" in captured.out + captured.err  # the log may be configured by another test
    assert broker.commits == 1


class NotClosed(Processor):
    """Cannot be closed."""

    def init(self, context: ProcessorContext) -> None:
        self.seen = context.state_store("seen")

    def process(self, record: Record) -> None:
        if record.value == "bad":
            raise ValueError("a bad record")
        self.seen.put(record.key, record.value)

    def close(self) -> None:
        raise OSError("not closed")


def test_an_error_of_close_is_logged_and_the_task_can_be_opened_again(
    broker: Broker, request_: BatchRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise it would replace the failure because of which the task is closed."""
    request = batch_request(NOT_CLOSED, request_.state_folder)
    for number in range(2):
        task = OpenTask(request, 0)
        input_ = RecordInput([(*IN, number, 1_000, b"a", b"x", ())])
        assert task.process_batch(request, input_, tick=False).read == 1
        task.close()
    captured = capsys.readouterr()
    assert f"OSError: not closed ({__name__}, line" in captured.out + captured.err
    assert broker.commits == 2


def test_each_batch_commits_the_next_version_of_the_state(broker: Broker, request_: BatchRequest) -> None:
    task = OpenTask(request_, 0)
    for number in range(3):
        assert process(task, request_, number).read == 1
        assert broker.committed[IN][0] == number + 1
        assert broker.metadata.version == number + 1
    assert broker.counts() == [1, 2, 3]


def test_reopened_state_is_not_restored(broker: Broker, request_: BatchRequest) -> None:
    """The committed version is that of the local state, so only the first owner reads the changelogs."""
    for number in range(3):
        task = OpenTask(request_, 0)
        assert process(task, request_, number).restored == 0
        task.close()
        assert broker.restores == 1
    assert broker.counts() == [1, 2, 3]


def test_a_batch_that_was_not_committed_has_no_effect(
    broker: Broker, request_: BatchRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = OpenTask(request_, 0)
    process(task, request_, 0)

    def refuse(*_: object) -> None:
        raise OSError

    with monkeypatch.context() as patched:
        patched.setattr(Broker, "commit", refuse)
        with pytest.raises(OSError):  # noqa: PT011 - raised above
            process(task, request_, 1)
    task.close()
    process(OpenTask(request_, 0), request_, 1)
    assert (broker.counts(), broker.restores, broker.metadata.version) == ([1, 2], 1, 2)


def test_a_committed_batch_is_applied_by_the_next_owner(
    broker: Broker, request_: BatchRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = OpenTask(request_, 0)
    process(task, request_, 0)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("headwater_spark.worker.local_state.LocalState.commit", die)
        with pytest.raises(KeyboardInterrupt):
            process(task, request_, 1)
    task.close()
    process(OpenTask(request_, 0), request_, 1, 2)
    assert (broker.counts(), broker.restores, broker.metadata.version) == ([1, 2, 3], 1, 3)


def test_a_batch_is_not_applied_if_another_client_has_committed_another_one(
    broker: Broker, request_: BatchRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both are the second batch of the task. The first client prepared it, and was fenced."""
    own, other = request_, attrs.evolve(request_, state_folder=tmp_path / "other")
    task = OpenTask(own, 0)
    process(task, own, 0)

    def refuse(*_: object) -> None:
        raise OSError

    with monkeypatch.context() as patched:
        patched.setattr(Broker, "commit", refuse)
        with pytest.raises(OSError):  # noqa: PT011 - raised above
            process(task, own, 1, 2, 3)
    task.close()
    process(OpenTask(other, 0), other, 1)
    assert (broker.metadata.version, broker.committed[IN][0], broker.restores) == (2, 2, 2)
    process(OpenTask(own, 0), own, 2)
    assert broker.restores == 3, "the state has records that are not committed"


def test_committed_records_are_skipped(broker: Broker, request_: BatchRequest) -> None:
    task = OpenTask(request_, 0)
    first = process(task, request_, 0, 1)
    assert (first.partition, first.read, first.skipped, first.written) == (0, 2, 0, 4)
    assert (first.dropped, first.handler_message, first.stream_time) == (0, None, 1_001)
    assert first.state_bytes > 0
    assert process(task, request_, 0, 1) == BatchResult(partition=0, skipped=2)
    again = process(task, request_, 1, 2)
    assert (again.read, again.skipped) == (1, 1)
    assert broker.commits == 2


def test_a_tick_commits_the_unchanged_offset(broker: Broker, request_: BatchRequest) -> None:
    task = OpenTask(request_, 0)
    result = process(task, request_, tick=True)
    assert (result.read, result.stream_time, broker.committed[IN][0]) == (0, -1, 0)
    process(task, request_, 0)
    process(task, request_, tick=True)
    assert broker.committed[IN][0] == 1
    assert broker.metadata.version == 3
    assert not process(task, request_).read
    assert broker.commits == 3


def test_a_renewal_commits_the_offsets_of_all_partitions(broker: Broker, request_: BatchRequest) -> None:
    """A tick alone commits one of them: brokers would forget the others.

    A commit would release the third one, which the driver has not named.
    """
    other = ("other", 0)
    request = attrs.evolve(
        request_,
        partition_counts={"in": 1, "other": 1, "third": 1},
        end_offsets={IN: 2, other: 7},
        renews_offsets=True,
    )
    process(OpenTask(request_, 0), request_, 0, 1)
    broker.committed |= {other: (7, broker.committed[IN][1]), ("third", 0): (0, "")}
    task = OpenTask(request, 0)
    before = dict(broker.committed)
    broker.committed.clear()
    process(task, request, tick=True)
    assert {each: offset for each, (offset, _) in broker.committed.items()} == {IN: 2, other: 7}
    assert all(text != before[IN][1] for _, text in broker.committed.values()), "the version is a new one"


def test_the_end_of_a_batch_may_be_behind_transaction_markers(broker: Broker, request_: BatchRequest) -> None:
    with_end = attrs.evolve(request_, end_offsets={IN: 7})
    process(OpenTask(request_, 0), with_end, 0)
    assert broker.committed[IN][0] == 7


def test_metadata_has_the_largest_timestamp_of_the_partition(broker: Broker, request_: BatchRequest) -> None:
    process(OpenTask(request_, 0), request_, 0, 1)
    assert int.from_bytes(base64.b64decode(broker.committed[IN][1])[1:9], "big") == 1_001
