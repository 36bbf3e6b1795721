"""The complete texts of refused moves. `UPDATE_GOLDEN=1` rewrites them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.model.problems import Location, Problem
from headwater.report import problems_text
from headwater_spark.driver.processor_expansion.problems import (
    batch_takes_long,
    many_unprocessed,
    not_begun,
    older_batch_runs,
    partitions_not_known,
)
from headwater_spark.driver.processor_move.problems import (
    fewer_processors,
    fewer_than_initial,
    forgotten_offset,
    misplaced_entry,
    moved_keys,
    store_not_movable,
)
from headwater_spark.engine.scaling.moved_stores import MovedStore, NotMovable
from tests.runtime.driver.counting_application import move_of

GOLDEN = Path(__file__).parent / "move_golden"
_AT = Location("app.yaml", 7, 5, "/topology/2")


def misplaced(*, is_keyed_by_user: bool, after: int = 4) -> Problem:
    store = MovedStore(
        "seen", "app-seen-changelog", lambda key: key, is_keyed_by_user=is_keyed_by_user, at=_AT
    )
    return misplaced_entry(move_of(4, 2, after), store, 0, 1)


TEXTS: dict[str, Problem] = {
    **{
        f"store_with_{reason.name.lower()}": store_not_movable("app", "seen", reason, _AT)
        for reason in NotMovable
    },
    "misplaced_entry_of_an_operator": misplaced(is_keyed_by_user=False),
    "misplaced_entry_of_a_move_to_fewer": misplaced(is_keyed_by_user=False, after=1),
    "other_counts_of_a_move_to_fewer": moved_keys(move_of(4, 8, 4), 8, ["orders: 4"], _AT),
    "forgotten_offset_of_a_move_to_fewer": forgotten_offset(move_of(8, 8, 4), "orders", 5),
    "store_not_keyed_by_record": misplaced(is_keyed_by_user=True),
    "fewer_than_the_initial_number": fewer_than_initial(move_of(12, 6, 2, 6), 6, _AT),
    "partitions_that_are_not_known": partitions_not_known(
        move_of(4, 2, 4), ["2 of 4 of in"], "2026-11-24T03:50:00+00:00"
    ),
    "older_batch": older_batch_runs(move_of(4, 2, 4), "1", "2026-11-24T03:50:00+00:00"),
    "long_backlog": many_unprocessed(move_of(4, 2, 4), 200_000, "2026-11-24T03:50:00+00:00"),
    "other_number_while_it_is_checked": not_begun("app", 8, 6),
    "long_batch": batch_takes_long(move_of(4, 2, 4), "1", 60.0),
    "fewer_while_it_runs": fewer_processors("app", 4, 2, _AT),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"{name}.txt", problems_text([TEXTS[name]]) + "\n")


def test_each_text_is_still_reported() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == TEXTS.keys()
