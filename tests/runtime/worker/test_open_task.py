"""A task between its batches: its session and state, refused records, and input as columns."""

import attrs
import pytest
from confluent_kafka import KafkaError

from headwater_spark.engine.records import Headers
from headwater_spark.worker.local_state import LocalState
from headwater_spark.worker.messages import BatchRequest
from headwater_spark.worker.record_sender import RecordsRefusedError, Refusal, RefusedRecords
from headwater_spark.worker.task_batch import OpenTask, cache_bytes
from headwater_spark.worker.task_input import RecordInput
from tests.runtime.worker.memory_broker import IN, REUSED, Broker, batch_request, process, record
from tests.runtime.worker.test_task_input import columns

CONTINUING = """
application:
  id: continuing
  config: {production.exception.handler: AlwaysContinueProductionExceptionHandler}
topology:
  - stream: {topic: in, serdes: {key: string, value: string}}
  - to: {topic: out, serdes: {key: string, value: string}}
"""
COUNTED_BY_KEY = """
application: {id: cached}
topology:
  - stream: {topic: in, serdes: {key: bytes, value: bytes}}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: out, serdes: {key: bytes, value: long}}
"""
COUNTED_IN_WINDOWS = COUNTED_BY_KEY.replace(
    "  - count", "  - windowedBy: {tumbling: {size: 10s, grace: 5s}}\n  - count"
).replace("{key: bytes, value: long}", "{key: time-windowed, value: long}")
CHANGELOG = "counted-counts-changelog"


def test_a_task_has_the_layout_and_the_name_of_its_request(broker: Broker, request_: BatchRequest) -> None:
    task = OpenTask(attrs.evolve(request_, layout_version=3), 0)
    assert task.layout_version == 3
    assert broker.opened == [(request_.task_name(0), False)]
    assert task.is_slow is False


def test_a_task_without_stores_keeps_nothing_on_disk(broker: Broker, request_: BatchRequest) -> None:
    request = batch_request(CONTINUING, request_.state_folder / "new")
    task = OpenTask(request, 0)
    assert process(task, request, 0).state_bytes == 0
    assert not request.state_folder.exists()
    task.close()
    assert broker.commits == 1


def test_the_size_of_the_state_is_that_on_disk(broker: Broker, request_: BatchRequest) -> None:
    found = process(OpenTask(request_, 0), request_, 0).state_bytes
    [folder] = request_.state_folder.iterdir()
    assert found == 512 * sum(file.stat().st_blocks for file in folder.iterdir())
    assert broker.commits == 1


def test_restored_records_are_reported_once(broker: Broker, request_: BatchRequest) -> None:
    broker.changelog_end = 40
    task = OpenTask(request_, 0)
    assert [process(task, request_, offset).restored for offset in (0, 1)] == [40, 0]


def changelog_offsets(request: BatchRequest) -> dict[str, int]:
    [folder] = request.state_folder.iterdir()
    state = LocalState(folder)
    offsets = dict(state.offsets())
    state.release()
    return offsets


@pytest.mark.parametrize("restored", [40, None])
def test_the_next_restore_continues_after_the_written_records(
    broker: Broker, request_: BatchRequest, restored: int | None
) -> None:
    broker.changelog_end = restored
    task = OpenTask(request_, 0)
    process(task, request_, 0, 1, 2)
    task.close()
    assert changelog_offsets(request_) == {CHANGELOG: (restored or 0) + 3}


def test_a_source_that_serves_as_changelog_is_restored_to_the_committed_offset(
    broker: Broker, request_: BatchRequest
) -> None:
    request = batch_request(REUSED, request_.state_folder)
    task = OpenTask(request, 0)
    process(task, request, 0, 1)
    task.close()
    assert changelog_offsets(request) == {"in": 2}
    assert broker.committed[IN][0] == 2


def refusing(offset: int) -> RefusedRecords:
    """Return what is known after the brokers have refused the output of a record."""
    _, _, _, time, key, value, headers = record(offset)
    refusal = Refusal(
        code=KafkaError.INVALID_RECORD,
        text="INVALID_RECORD",
        record=("out", None, key, value, time, headers),
        now_ms=1_000,
    )
    refused = RefusedRecords()
    refused.add(RecordsRefusedError(KafkaError(KafkaError.INVALID_RECORD), [refusal]))
    return refused


def test_a_refused_record_is_given_to_the_production_exception_handler(
    broker: Broker, request_: BatchRequest
) -> None:
    request = batch_request(CONTINUING, request_.state_folder)
    task = OpenTask(request, 0, refusing(1))
    assert broker.opened[-1] == (request.task_name(0), True)
    result = process(task, request, 0, 1, 2)
    assert (result.read, result.written, result.dropped) == (3, 2, 1)
    assert "INVALID_RECORD" in (result.handler_message or "")
    assert broker.committed[IN][0] == 3
    assert not task.is_slow
    after = process(task, request, 3)
    assert (after.written, after.dropped, after.handler_message) == (1, 0, None)
    assert task.is_slow, "no record of the batch was refused: requests may have several records again"


def test_without_a_refusal_a_task_is_not_slow(broker: Broker, request_: BatchRequest) -> None:
    task = OpenTask(request_, 0)
    process(task, request_, 0)
    assert task.is_slow is False
    assert broker.commits == 1


def test_columns_are_counted_without_converting_them(broker: Broker, request_: BatchRequest) -> None:
    """With a record cache, only the last count of each key is written."""
    request = batch_request(COUNTED_BY_KEY, request_.state_folder)
    records = [
        (*IN, offset, 1_000 + offset, key, b"v", ()) for offset, key in enumerate([b"a", b"b", b"a", b"c"])
    ]
    input_ = columns(records)
    result = OpenTask(request, 0).process_batch(request, input_, tick=False)
    assert input_.has_columns
    assert (result.read, result.stream_time) == (4, 1_003)
    found = {each[2]: int.from_bytes(each[3] or b"", "big") for each in broker.records if each[0] == "out"}
    assert found == {b"a": 2, b"b": 1, b"c": 1}


@pytest.mark.parametrize(
    ("number", "headers", "shared", "stay_columns"),
    [
        (600, (), (), True),
        (60, (), (), False),
        (600, (("h", b"1"),), (), False),
        (600, (("headwater.task", b"0"),), ("in",), True),
        (600, (("h", b"1"), ("headwater.task", b"0")), ("in",), True),
    ],
)
def test_large_batches_are_counted_in_windows_without_converting_them(
    broker: Broker,
    request_: BatchRequest,
    number: int,
    headers: Headers,
    shared: tuple[str, ...],
    *,
    stay_columns: bool,
) -> None:
    request = batch_request(COUNTED_IN_WINDOWS, request_.state_folder, shared_topics=frozenset(shared))
    request = attrs.evolve(request, program=request.program.with_counts({"out": 1}))
    records = [(*IN, offset, 100 * offset, b"k%d" % (offset % 3), b"v", headers) for offset in range(number)]
    input_ = columns(records, 250)
    result = OpenTask(request, 0).process_batch(request, input_, tick=False)
    assert (result.read, input_.has_columns) == (number, stay_columns)
    counts = sorted(int.from_bytes(each[3] or b"", "big") for each in broker.records if each[0] == "out")
    assert counts == sorted([33, 33, 34] * (number // 100) or [20, 20, 20])


@pytest.mark.parametrize("timestamp", [-1, 5])
def test_columns_with_a_negative_timestamp_are_processed_one_by_one(
    broker: Broker, request_: BatchRequest, timestamp: int
) -> None:
    request = batch_request(COUNTED_BY_KEY, request_.state_folder)
    input_ = columns([(*IN, 0, timestamp, b"a", b"v", ())])
    result = OpenTask(request, 0).process_batch(request, input_, tick=False)
    assert (result.read, input_.has_columns) == (1, timestamp >= 0)
    assert broker.counts() == ([] if timestamp < 0 else [1])


def test_columns_are_processed_one_by_one_after_a_refusal(broker: Broker, request_: BatchRequest) -> None:
    """With counts per key, the input record of a refused record would not be known."""
    request = batch_request(COUNTED_BY_KEY, request_.state_folder)
    input_ = columns([record(0), record(1)])
    OpenTask(request, 0, refusing(9)).process_batch(request, input_, tick=False)
    assert not input_.has_columns
    assert broker.counts() == [2]


@pytest.mark.parametrize("as_columns", [True, False])
def test_each_count_is_written_without_a_record_cache(
    broker: Broker, request_: BatchRequest, *, as_columns: bool
) -> None:
    broker.changelog_end = 40
    records = [
        (*IN, offset, 1_009 - offset, key, b"v", (("h", b"1"),) * (offset % 2))
        for offset, key in enumerate([b"a", b"b", b"a", b"a"])
    ]
    input_ = columns(records) if as_columns else RecordInput(records)
    task = OpenTask(request_, 0)
    result = task.process_batch(request_, input_, tick=False)
    task.close()
    counts = [(b"a", 1, 1_009), (b"b", 1, 1_008), (b"a", 2, 1_009), (b"a", 3, 1_009)]
    written = [(key, number.to_bytes(8, "big"), time) for key, number, time in counts]
    logged = [(CHANGELOG, 0, *each, ()) for each in written]
    out = [("out", None, *each, record[-1]) for each, record in zip(written, records, strict=True)]
    assert [each for each in broker.records if each[0] == CHANGELOG] == logged
    assert [each for each in broker.records if each[0] == "out"] == out
    assert (result.read, result.written, result.stream_time) == (4, 8, 1_009)
    assert isinstance(input_, RecordInput) or input_.has_columns
    assert changelog_offsets(request_) == {CHANGELOG: 44}


def test_records_are_counted_one_by_one_too(broker: Broker, request_: BatchRequest) -> None:
    request = batch_request(COUNTED_BY_KEY, request_.state_folder)
    OpenTask(request, 0).process_batch(request, RecordInput([record(0), record(1)]), tick=False)
    assert broker.counts() == [2]


@pytest.mark.parametrize("as_columns", [True, False])
def test_the_cache_of_a_task_is_the_share_of_its_stream_thread(
    broker: Broker, request_: BatchRequest, *, as_columns: bool
) -> None:
    """Two entries fit into 200 bytes, one into 100: with a second thread, an update leaves early."""
    document = COUNTED_BY_KEY.replace(
        "{id: cached}", "{id: cached, config: {statestore.cache.max.bytes: 200}}"
    )
    request = batch_request(document, request_.state_folder)
    task = OpenTask(request, 0)
    written: list[list[bytes | None]] = []
    for threads in (1, 2, 1):
        first = 3 * len(written)
        records = [(*IN, first + at, 1_000, key, b"v", ()) for at, key in enumerate([b"a", b"b", b"a"])]
        asked = attrs.evolve(request, stream_threads=threads)
        input_ = columns(records) if as_columns else RecordInput(records)
        task.process_batch(asked, input_, tick=False)
        written.append(
            [each[2] for each in broker.records if each[0] == "out"][sum(len(batch) for batch in written) :]
        )
    assert written == [[b"b", b"a"], [b"a", b"b", b"a"], [b"b", b"a"]]


def test_a_global_thread_has_a_share_of_the_cache(request_: BatchRequest) -> None:
    request = attrs.evolve(batch_request(COUNTED_BY_KEY, request_.state_folder), stream_threads=3)
    assert cache_bytes(request) == 10 * 1024 * 1024 // 3
    assert cache_bytes(attrs.evolve(request, global_programs=(request.program,))) == 10 * 1024 * 1024 // 4
