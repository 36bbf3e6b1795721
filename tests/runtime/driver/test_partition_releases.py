"""An added partition is read after the partitions that had its keys before."""

from headwater_spark.driver.input.partition_releases import PartitionReleases
from headwater_spark.engine.scaling.processors import Processors

PARENT, OTHER, ADDED, LATER = ("in", 0), ("in", 1), ("in", 2), ("in", 6)
TWO = Processors(2, 2)


def test_first_partitions_are_read_at_once() -> None:
    releases = PartitionReleases.of(TWO, ())
    assert releases.released({PARENT: 7, OTHER: 3}, {}) == {PARENT: 7, OTHER: 3}


def test_added_partition_waits_for_the_end_of_its_parent_when_it_was_found() -> None:
    releases = PartitionReleases.of(TWO, ())
    ends = {PARENT: 7, OTHER: 3, ADDED: 5}
    assert releases.released(ends, {PARENT: 6}) == {PARENT: 7, OTHER: 3}
    ends |= {PARENT: 90}
    assert releases.released(ends, {PARENT: 6, OTHER: 3}) == {PARENT: 90, OTHER: 3}
    assert releases.released(ends, {PARENT: 7}) == ends, "not for records that came later"
    assert releases.released(ends, {}) == ends


def test_added_partition_waits_for_all_partitions_that_had_its_keys() -> None:
    releases = PartitionReleases.of(TWO, ())
    ends = {PARENT: 7, ADDED: 5, LATER: 1}
    assert releases.released(ends, {PARENT: 7}) == {PARENT: 7, ADDED: 5}
    assert releases.released(ends, {PARENT: 7, ADDED: 4}) == {PARENT: 7, ADDED: 5}
    assert releases.released(ends, {PARENT: 7, ADDED: 5}) == ends


def test_each_topic_has_its_own_parents() -> None:
    releases = PartitionReleases.of(TWO, ())
    ends = {PARENT: 7, ADDED: 5, ("more", 0): 0, ("more", 2): 4}
    assert releases.released(ends, {}) == {PARENT: 7, ("more", 0): 0, ("more", 2): 4}


def test_partition_that_was_processed_before_does_not_wait_again() -> None:
    releases = PartitionReleases.of(TWO, [ADDED])
    assert releases.released({PARENT: 7, ADDED: 5}, {}) == {PARENT: 7, ADDED: 5}


def test_the_first_record_of_a_parent_is_awaited() -> None:
    releases = PartitionReleases.of(TWO, ())
    assert releases.released({PARENT: 1, ADDED: 5}, {}) == {PARENT: 1}
    assert releases.released({PARENT: 1, ADDED: 5}, {PARENT: 0}) == {PARENT: 1}
    assert releases.released({PARENT: 1, ADDED: 5}, {PARENT: 1}) == {PARENT: 1, ADDED: 5}


def test_a_parent_that_is_not_read_is_not_awaited() -> None:
    releases = PartitionReleases.of(TWO, ())
    assert releases.released({OTHER: 3, ADDED: 5}, {}) == {OTHER: 3, ADDED: 5}
