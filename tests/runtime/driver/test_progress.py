"""How far Spark has read: the offsets after the last batch of which all records are processed."""

from itertools import count

from structlog.testing import capture_logs

from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.queries.progress import Progress, Records
from headwater_spark.driver.run.application_run import progress_logged
from headwater_spark.worker.messages import BatchResult

_FIRST, _SECOND = {("orders", 0): 7}, {("orders", 0): 9}
_RESULT = BatchResult(partition=0, read=3)


def test_offsets_of_a_batch_count_when_it_has_finished() -> None:
    progress = Progress()
    assert progress.read_to("0") == {}
    progress.begin_batch("0", 1, _FIRST)
    progress.record_batch("0", 1, [_RESULT])  # a part of it
    assert progress.read_to("0") == {}
    progress.finish_batch("0")
    assert progress.read_to("0") == _FIRST
    progress.begin_batch("0", 2, _SECOND)
    progress.pause_batch("0")  # it failed
    assert progress.read_to("0") == _FIRST


def test_offsets_of_a_checkpoint_at_a_url_are_those_of_spark() -> None:
    progress = Progress()
    progress.begin_batch("0", 1, {})
    progress.set_read_to("0", _FIRST)
    progress.finish_batch("0")
    assert progress.read_to("0") == _FIRST


def test_running_batch_is_known_with_what_it_waits_for() -> None:
    progress = Progress()
    assert (progress.running("0"), progress.batches("0")) == (None, 0)
    progress.begin_batch("0", 4, {})
    progress.record_wait("0", in_round=True)
    running = progress.running("0")
    assert running is not None
    assert (running.number, running.in_round) == (4, True)
    progress.record_batch("0", 4, [_RESULT])
    progress.pause_batch("0")
    assert (progress.running("0"), progress.batches("0")) == (None, 1)


def test_records_of_all_queries_are_counted() -> None:
    progress = Progress()
    progress.record_batch("0", 1, [BatchResult(partition=0, read=3, written=2)])
    progress.record_batch("0", 2, [BatchResult(partition=1, read=1)])
    progress.record_batch("1", 1, [BatchResult(partition=0, read=4, written=5)])
    assert progress.records() == Records(read=8, written=7)


def test_a_run_until_idle_logs_its_progress_and_a_summary() -> None:
    numbers = count()
    with capture_logs() as logs:
        with progress_logged("shop", lambda: Records(next(numbers), 0), report_seconds=0.0):
            assert until(lambda: len(logs) >= 2, 60)
        assert [line["event"] for line in logs[-2:]] == ["processing records", "records processed"]
    assert [line["records_read"] for line in logs] == list(range(len(logs)))
    assert {line["application"] for line in logs} == {"shop"}


def test_the_summary_of_a_short_run_is_its_only_line() -> None:
    with capture_logs() as logs, progress_logged("shop", lambda: Records(3, 2)):
        pass
    [line] = logs
    assert (line["event"], line["records_read"], line["records_written"]) == ("records processed", 3, 2)
