"""Which commits of tasks are found to be replaced by earlier ones."""

from headwater.model.offset_metadata import BATCH_ID, LINEAGE_KEY, OffsetMetadata
from headwater_spark.driver.queries.known_commits import KnownCommits
from headwater_spark.worker.messages import BatchResult

_FIRST, _SECOND = ("in", 0), ("in", 1)


def _text(version: int, lineage: int | None = 7, batch: int = 1) -> str:
    clocks = {BATCH_ID: batch} | ({} if lineage is None else {LINEAGE_KEY: lineage})
    return OffsetMetadata(version, clocks).encode(-1)


def _known(*committed: tuple[str, int, int, str]) -> KnownCommits:
    known = KnownCommits()
    known.add([BatchResult(partition=0, committed=committed)])
    return known


def test_an_earlier_commit_of_the_task_has_replaced_the_last_one() -> None:
    known = _known(("in", 0, 50, _text(5)), ("in", 1, 80, _text(5)))
    found = {_FIRST: (20, _text(2)), _SECOND: (80, _text(5))}
    assert known.replaced(found) == {_FIRST: (50, _text(5))}


def test_the_last_commit_of_each_partition_counts() -> None:
    known = _known(("in", 0, 50, _text(5)))
    known.add([BatchResult(partition=0, committed=(("in", 0, 60, _text(6)),))])
    assert known.replaced({_FIRST: (50, _text(5))}) == {_FIRST: (60, _text(6))}


def test_newer_commits_and_offsets_that_are_no_commit_of_the_task_are_kept() -> None:
    known = _known(("in", 0, 50, _text(5)))
    for text in (_text(5), _text(6), _text(2, lineage=8), _text(2, lineage=None), "", "by hand"):
        assert not known.replaced({_FIRST: (20, text)}), text
    assert not known.replaced({}), "the offset was deleted"


def test_a_commit_of_another_process_with_the_same_version_is_outdated() -> None:
    known = _known(("in", 0, 50, _text(5)))
    assert known.replaced({_FIRST: (40, _text(5, batch=2))}) == {_FIRST: (50, _text(5))}


def test_nothing_is_replaced_when_commits_are_forgotten() -> None:
    known = _known(("in", 0, 50, _text(5)))
    assert list(known.partitions) == [_FIRST]
    known.forget()
    assert not known.partitions
    assert not known.replaced({_FIRST: (20, _text(2))})


def test_a_task_that_commits_nothing_has_the_commit_from_before_the_start() -> None:
    known = KnownCommits()
    known.learn({_FIRST: (50, _text(5)), _SECOND: (80, _text(5))})
    known.add([BatchResult(partition=1, committed=(("in", 1, 90, _text(6)),))])
    assert known.replaced({_FIRST: (20, _text(2)), _SECOND: (80, _text(5))}) == {
        _FIRST: (50, _text(5)),
        _SECOND: (90, _text(6)),
    }
    assert not known.replaced({_FIRST: (60, _text(6)), _SECOND: (90, _text(6))})
