"""Which records of repartition topics are purged, and which queries check for records without a signal."""

import pytest

from headwater_spark.driver.offsets import Backlog
from headwater_spark.driver.topic_watch import may_have_unread, processed_offsets


def test_records_that_spark_reads_again_are_not_purged() -> None:
    committed = {("r", 0): 210, ("r", 1): 50, ("r", 2): 7}
    assert processed_offsets(committed, {("r", 0): 105, ("r", 1): 60}) == {
        ("r", 0): 105,
        ("r", 1): 50,
        ("r", 2): 0,
    }


@pytest.mark.parametrize(
    ("backlog", "present", "expected"),
    [
        pytest.param(Backlog(lag=0, committed=7), {"in": 2, "other": 9}, False, id="all is read"),
        pytest.param(Backlog(lag=1, committed=7), {"in": 2}, True, id="a marker or a record is not read"),
        pytest.param(None, {"in": 2}, True, id="no broker answers"),
        pytest.param(Backlog(lag=None, committed=0), {"in": 2}, True, id="unknown lag"),
        pytest.param(Backlog(lag=0, committed=7), {"in": 3}, True, id="added partition"),
        pytest.param(Backlog(lag=0, committed=7), {}, False, id="deleted topic"),
    ],
)
def test_query_checks_if_it_may_have_unread_input(
    backlog: Backlog | None, present: dict[str, int], *, expected: bool
) -> None:
    assert may_have_unread(backlog, ["in"], {"in": 2, "other": 1}, present) is expected
