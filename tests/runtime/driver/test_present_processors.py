"""KIP-287: how many processors the state has when an application starts, and their initial number."""

import attrs
import pytest

from headwater.model.offset_metadata import MoveMark, MovePhase, OffsetMetadata
from headwater.model.problems import Location
from headwater.model.topology import Application
from headwater_spark.driver.topics.present_processors import initial_processors, present_processors

PLAIN = OffsetMetadata(3).encode(0)
FOUR_TEXT = OffsetMetadata(3).encode(0, declared=4)
INITIAL_4 = OffsetMetadata(3).encode(0, initial=4)
FOUR = Application("app", Location("app.yaml", 1), processors=4)
LINEAR = Application(
    "app",
    Location("app.yaml", 1),
    processors=4,
    config={"static.partitioner.class": "linear-hash", "static.partitioner.initial.partitions": "4"},
)


def found(
    text: str, changelogs: int, inputs: int, application: Application = FOUR, mark: MoveMark | None = None
) -> tuple[int, int | None]:
    counts = {"changelog": changelogs} if changelogs else {}
    present = present_processors(application, counts, {"in": inputs}, ["", text], mark)
    return present, initial_processors(application, present, counts, {"in": inputs}, ["", text])


@pytest.mark.parametrize(
    ("text", "changelogs", "inputs", "expected"),
    [
        (PLAIN, 4, 8, (4, 4)),
        (PLAIN, 8, 8, (8, 8)),
        (INITIAL_4, 6, 8, (6, 4)),
        (INITIAL_4, 6, 12, (4, 4)),
        (PLAIN, 4, 12, (4, 4)),
        ("", 4, 12, (4, 3)),
        ("", 6, 8, (6, 4)),
        ("", 0, 12, (4, 4)),
        (PLAIN, 3, 8, (4, 4)),
        (PLAIN, 2, 8, (2, 2)),
    ],
    ids=[
        "as declared",
        "doubled",
        "between two doublings",
        "a count that fits to another initial number",
        "the same with the declared number",
        "nothing committed",
        "nothing committed between two doublings",
        "not set up",
        "too few changelog partitions",
        "more declared",
    ],
)
def test_the_number_of_processors_and_the_initial_one(
    text: str, changelogs: int, inputs: int, expected: tuple[int, int]
) -> None:
    assert found(text, changelogs, inputs) == expected


def test_changelogs_that_another_client_expanded_are_left_to_the_planner() -> None:
    """No task has committed as one of 6 processors."""
    assert found(PLAIN, 6, 8) == (4, 4)
    assert found(PLAIN, 6, 9, LINEAR) == (4, 4)
    assert found(INITIAL_4, 6, 9, LINEAR) == (6, 4)


@pytest.mark.parametrize(
    ("text", "changelogs", "expected"),
    [
        (OffsetMetadata(3).encode(0, count=4), 8, (4, 4)),
        (OffsetMetadata(3).encode(0, count=2), 8, (2, 2)),
        (OffsetMetadata(3).encode(0, count=2), 4, (2, 2)),
        (OffsetMetadata(3).encode(0, initial=4, count=6), 8, (6, 4)),
        (OffsetMetadata(3).encode(0, count=2), 1, (4, 4)),
        (OffsetMetadata(3).encode(0, count=2), 0, (4, 4)),
    ],
    ids=["as declared", "more declared", "as many partitions", "fewer declared", "too few", "not set up"],
)
def test_the_committed_number_decides_after_processors_were_removed(
    text: str, changelogs: int, expected: tuple[int, int]
) -> None:
    assert found(text, changelogs, 8) == expected


@pytest.mark.parametrize(
    ("texts", "declared", "changelogs", "inputs", "expected"),
    [
        ((FOUR_TEXT, FOUR_TEXT), 4, 8, 8, 4),
        ((FOUR_TEXT, FOUR_TEXT), 8, 8, 8, 4),
        ((FOUR_TEXT, ""), 4, 8, 8, 4),
        ((FOUR_TEXT,), 4, 8, 4, 4),
        ((FOUR_TEXT,), 4, 4, 8, 4),
        ((FOUR_TEXT,), 8, 4, 8, 4),
        ((FOUR_TEXT, PLAIN), 4, 8, 8, 4),
        ((FOUR_TEXT, OffsetMetadata(3).encode(0, declared=8)), 4, 8, 8, 4),
        ((OffsetMetadata(3).encode(0, declared=8),), 4, 8, 8, 8),
        ((FOUR_TEXT,), 4, 2, 8, 4),
    ],
    ids=[
        "expanded by another client",
        "declared as many as its partitions",
        "a partition without a commit",
        "more than the inputs have",
        "as committed",
        "more declared",
        "one text of an earlier version",
        "two numbers",
        "added since then",
        "a changelog topic that is too small",
    ],
)
def test_the_committed_number_decides_if_another_client_expanded_the_changelogs(
    texts: tuple[str, ...], declared: int, changelogs: int, inputs: int, expected: int
) -> None:
    application = attrs.evolve(FOUR, processors=declared)
    counts = {"changelog": changelogs}
    assert present_processors(application, counts, {"in": inputs}, texts, None) == expected


def test_the_partitions_of_an_expansion_that_has_begun_do_not_count() -> None:
    mark = MoveMark(MovePhase.CATCH_UP, 4, 6)
    assert found(PLAIN, 6, 8, mark=mark) == (4, 4)


def test_a_move_that_was_interrupted_shows_the_initial_number() -> None:
    copying = OffsetMetadata(3).encode(0, mark=MoveMark(MovePhase.COPY, 4, 6))
    cleared = OffsetMetadata(3).encode(0, mark=MoveMark(MovePhase.CLEAR, 6, 8))
    assert found(copying, 6, 8) == (4, 4)
    assert found(OffsetMetadata(3).encode(0, mark=MoveMark(MovePhase.COPY, 4, 8)), 8, 8) == (4, 4)
    announced = MoveMark(MovePhase.CATCH_UP, 4, 6)
    assert found(copying, 6, 8, mark=announced) == (4, 4)
    assert found(cleared, 8, 8, mark=MoveMark(MovePhase.CATCH_UP, 6, 8)) == (6, 8)


def test_without_inputs_nothing_is_known() -> None:
    assert initial_processors(FOUR, 4, {"changelog": 4}, {}, []) is None
