"""How far Spark has read: the offsets after the last batch of which all records are processed."""

from headwater_spark.driver.queries.progress import Progress
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
    progress.wait_for_round("0", waits=True)
    running = progress.running("0")
    assert running is not None
    assert (running.number, running.in_round) == (4, True)
    progress.record_batch("0", 4, [_RESULT])
    progress.pause_batch("0")
    assert (progress.running("0"), progress.batches("0")) == (None, 1)
