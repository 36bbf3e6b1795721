"""KIP-287: the state moves to fewer processors. Changelog topics keep their partitions."""

from functools import partial

import pytest

from headwater.model.offset_metadata import (
    LINEAGE_KEY,
    OffsetMetadata,
    decode_count,
    decode_initial,
    decode_metadata,
    decode_processor,
)
from headwater_spark.driver.processor_move.moves import Move, merged_times
from tests.runtime.driver.counting_application import (
    INPUT,
    KEYS,
    Application,
    doubled,
    execute,
    move_of,
)
from tests.runtime.driver.killed_moves import kill_and_complete, operations


def shrunk(processors: int) -> tuple[Application, Move]:
    """Return an application with 4 processors and partitions, and the move to fewer processors."""
    app, move = doubled()
    execute(app.cluster, move)
    app.complete(4)
    app.process_each_key()
    return app, app.move_to(processors)


@pytest.mark.parametrize("killed_after", operations(partial(shrunk, 3)))
def test_a_move_to_fewer_that_is_killed_is_completed_by_the_next_one(killed_after: int) -> None:
    app = kill_and_complete(partial(shrunk, 3), killed_after)
    assert app.counts == dict.fromkeys(KEYS, 4)
    app.check_owners()


def test_the_changelog_keeps_its_partitions_and_the_number_is_committed() -> None:
    """4 → 2 → 3 → 6 → 4 processors: only the last but one needs more partitions."""
    app, _ = shrunk(2)
    recorded = []
    for processors in (2, 3, 6, 4):
        app.add_partitions(app.partitions if processors > app.partitions else 0)
        app.process()
        execute(app.cluster, app.move_to(processors))
        app.complete(processors)
        app.process_each_key()
        texts = [each.text for (topic, _), each in app.cluster.offsets.items() if topic == INPUT]
        assert decode_initial(texts, processors) == {3: 2, 6: 4}.get(processors, processors)
        recorded.append((app.changelogs, decode_count(texts)))
    assert recorded == [(4, 2), (4, 3), (6, None), (6, 4)]
    assert app.counts == dict.fromkeys(KEYS, 7)


def test_a_processor_that_takes_over_others_has_no_local_state() -> None:
    """It may have entries that were deleted at the other processor. The others keep theirs."""
    app, move = shrunk(3)
    before = [decode_metadata(app.cluster.offsets[INPUT, each].text) for each in range(4)]
    execute(app.cluster, move)
    after = [decode_metadata(app.cluster.offsets[INPUT, each].text) for each in range(4)]
    lineages = [each.clocks.get(LINEAGE_KEY) for each in before + after if each is not None]
    assert lineages[4:] == [lineages[0], None, lineages[2], None]
    versions = [each.version for each in before + after if each is not None]
    assert versions[4] == versions[0] + 2
    assert versions[5] == versions[7] == max(versions[1], versions[3]) + 2
    owners = [decode_processor(app.cluster.offsets[INPUT, each].text, each) for each in range(4)]
    assert owners == [0, 1, 2, 1]


def test_merged_times_skip_nothing_that_waits() -> None:
    part = move_of(4, 4, 2).parts[0]
    first = {"task": 90, "counts/time": 80, "node/schedule/1": 100, "join/earliest": 40, "counts": 50}
    second = {"task": 70, "join/sequence": 8, "node/schedule/1": 60, "join/earliest": 70, "counts": 20}
    states = [OffsetMetadata(1, clocks | {LINEAGE_KEY: 7}) for clocks in (first, second, {})]
    assert merged_times([*states, OffsetMetadata()], part) == {
        "task": 90,
        "counts/time": 80,
        "join/sequence": 8,
        "node/schedule/1": 60,
        "join/earliest": 40,
    }, "a processor has processed records, and emitted no closed window"
    assert merged_times([*states[:2], OffsetMetadata()], part)["counts"] == 20


@pytest.mark.parametrize(
    ("before", "after", "is_possible"), [(6, 3, True), (6, 4, True), (6, 2, False), (8, 1, True)]
)
def test_the_initial_number_can_be_halved_and_not_less(before: int, after: int, *, is_possible: bool) -> None:
    assert move_of(before, before, after).is_possible == is_possible
