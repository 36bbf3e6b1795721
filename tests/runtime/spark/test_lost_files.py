"""Files that are deleted under a running application: its checkpoint, and the local state of its tasks."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.states import ClientState
from tests.runtime.spark.applications import COUNT, MAP, TIMEOUT_SECONDS, Cluster, RunningApplication

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("packed_batches"),
]

_AT_LEAST_ONCE, _EXACTLY_ONCE = "at_least_once", "exactly_once_v2"
_MISSING = "committed offsets are missing"
_LOSS = "deleted before they were processed"
_MANY = 2_500
"""More records than a worker forwards to the owner of a task."""
_PARTS = ("", "metadata", "offsets", "commits", "sources", "offsets/0")
"""Parts of a checkpoint."""
_BATCHES = (5, _MANY, 5, 5)
"""Records that are counted after each part of the local state was deleted."""


@pytest.mark.parametrize(
    ("guarantee", "parts", "batches"),
    [
        pytest.param(_AT_LEAST_ONCE, ("commits", "offsets/0"), (5,), id=f"{_AT_LEAST_ONCE}-few"),
        pytest.param(_EXACTLY_ONCE, ("", "offsets"), (5, _MANY), id=f"{_EXACTLY_ONCE}-few"),
        pytest.param(_AT_LEAST_ONCE, _PARTS, _BATCHES, id=f"{_AT_LEAST_ONCE}-all", marks=pytest.mark.soak),
        pytest.param(_EXACTLY_ONCE, _PARTS, _BATCHES, id=f"{_EXACTLY_ONCE}-all", marks=pytest.mark.soak),
    ],
)
def test_checkpoint_and_local_state_can_be_deleted_while_the_application_runs(
    cluster: Cluster, guarantee: str, parts: Sequence[str], batches: Sequence[int]
) -> None:
    """Each part of the checkpoint, then the local state, as after the loss of a disk."""
    with cluster.application(COUNT, {"processing.guarantee": guarantee}, partitions=2) as running:
        with capture_logs() as log:
            running.application.start()
            expected = feed_and_check(running, 2, 0)
            for part in parts:
                expected = _delete_from_checkpoint(running, part, expected)
        assert not [line for line in log if _LOSS in line["event"]], "warnings of real losses only"
        expected = feed_and_check(running, 10, expected)
        for records in batches:
            for part in ("", f"{running.id}/1_0", f"{running.id}/1_1"):
                expected = _delete_local_state(running, part, records, expected)
        restored = sum(part["recordsRestored"] for part in running.application.subtopology_status())
        assert restored > 0
        assert until(lambda: running.application.state is ClientState.RUNNING, TIMEOUT_SECONDS)


def _delete_from_checkpoint(running: RunningApplication, part: str, before: int) -> int:
    """Delete a part of the checkpoint, and restart; each record is counted once. Return the count."""
    running.application.wait_until_idle()  # else Spark may write to the folder that is deleted
    assert delete(running.cluster.folder / "checkpoint" / running.id, part)
    expected = feed_and_check(running, 2, before)
    running.application.wait_until_idle()  # else a batch that is not committed is repeated
    running.restart()
    return feed_and_check(running, 2, expected)


def _delete_local_state(running: RunningApplication, part: str, records: int, before: int) -> int:
    """Delete a part of the local state: the results are the same as without a loss. Return the count.

    A task whose state is deleted while it is open fails, after it has sent records. With at least once they
    may be counted again; if the lease is deleted, too, the task is opened again before it sends any.
    """
    is_exact = running.document.application.config["processing.guarantee"] == _EXACTLY_ONCE
    if not is_exact:  # else a batch that is not committed is repeated
        running.application.wait_until_idle()
    shutil.rmtree(running.cluster.folder / "state" / part, ignore_errors=True)
    if is_exact or not part:
        return feed_and_check(running, records, before)
    return feed_and_check_least(running, records, before)


def test_forgotten_offsets_are_read_from_the_checkpoint_and_deleted_records_are_reported(
    cluster: Cluster,
) -> None:
    """Brokers forget the offsets of an idle partition; the records would be processed again.

    Later records are deleted before they are processed.
    """
    with cluster.application(MAP, VALUE="string") as running:
        running.application.start()
        running.feed(b"1", b"2")
        running.application.wait_until_idle()
        running.application.close()
        cluster.topics.delete_group(running.id)
        running.feed(b"3")
        running.restart()
        expected = [b"<1>", b"<2>", b"<3>"]
        assert until(lambda: running.values() == expected, TIMEOUT_SECONDS), running.values()
        running.application.wait_until_idle()
        running.application.close()
        running.feed(*[b"a"] * 5)
        cluster.topics.delete_records(running.source, 6)
        with capture_logs() as log:
            running.restart()
        (line,) = [line for line in log if _LOSS in line["event"]]
        assert (line["topic"], line["partition"], line["first"], line["last"]) == (running.source, 0, 3, 5)
        assert line["log_level"] == "warning"
        expected += [b"<a>", b"<a>"]
        assert until(lambda: running.values() == expected, TIMEOUT_SECONDS), running.values()


@pytest.mark.parametrize("guarantee", [pytest.param(_AT_LEAST_ONCE, marks=pytest.mark.soak), _EXACTLY_ONCE])
def test_offsets_of_idle_partitions_are_renewed_while_the_application_runs(
    cluster: Cluster, guarantee: str
) -> None:
    """Brokers forget them after a week. Without checkpoint, all records would be counted again."""
    with cluster.application(COUNT, {"processing.guarantee": guarantee}, partitions=2) as running:
        running.application.start()
        expected = feed_and_check(running, 3, 0)
        running.application.wait_until_idle()
        cluster.topics.delete_group(running.id)
        queries = running.application.queries.values()
        for _ in range(2):  # only the second call finds that no partition has advanced
            assert until(lambda: all(query.renew_offsets() for query in queries), TIMEOUT_SECONDS)
        running.application.close()
        shutil.rmtree(cluster.folder / "checkpoint" / running.id)
        running.application = cluster.create(running.document)
        with capture_logs() as log:
            running.application.start()
        assert not [line for line in log if line["event"].startswith(_MISSING)]
        feed_and_check(running, 2, expected)
        running.application.wait_until_idle()
        running.application.close()
        cluster.topics.delete_group(running.id)
        shutil.rmtree(cluster.folder / "checkpoint" / running.id)
        running.application = cluster.create(running.document)
        with capture_logs() as log:
            running.application.start()
        [line] = [line for line in log if line["event"].startswith(_MISSING)]
        assert line["subtopology"] == "1"
        assert len(line["tasks"]) == 1, "the records of the other task are still to be counted"


def feed_and_check(running: RunningApplication, records: int, before: int) -> int:
    """Feed records with one value, after `before` others; check that each is counted once."""
    after = before + records
    known = len(counts(running))
    running.feed(*[b"a"] * records)
    # Reading all records is slow, so first wait until there are enough, transaction markers included.
    assert until(lambda: running.cluster.topics.written(running.sink) >= after, TIMEOUT_SECONDS)
    assert until(lambda: counts(running)[-1:] == [after], TIMEOUT_SECONDS), (counts(running)[-9:], after)
    assert counts(running)[known:] == list(range(before + 1, after + 1))
    return after


def feed_and_check_least(running: RunningApplication, records: int, before: int) -> int:
    """Feed records with one value, after `before` others; check that none is lost, and return the count."""
    running.feed(*[b"a"] * records)
    assert until(lambda: counts(running)[-1] >= before + records, TIMEOUT_SECONDS), counts(running)[-9:]
    running.application.wait_until_idle()
    return counts(running)[-1]


def counts(running: RunningApplication) -> list[int]:
    return [int.from_bytes(value or b"", "big") for value in running.values()]


def delete(checkpoint: Path, part: str) -> int:
    """Delete a part of the checkpoints of all queries; return how many had it."""
    folders = [folder for folder in checkpoint.glob("*/*") if (folder / "metadata").exists()]
    found = [folder / part for folder in folders if (folder / part).exists()]
    for path in found:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return len(found)
