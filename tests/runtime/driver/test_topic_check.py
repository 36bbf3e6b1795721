"""Joined topics with different partition counts are tolerated for a while, with autoscaling only."""

import pytest

from headwater.compiler import StreamsConfig
from headwater.model.problems import Problem, ProblemCode
from headwater_spark.driver.topics.topic_check import UnevenExpansion

UNEVEN = Problem(code=ProblemCode.NOT_COPARTITIONED, summary="orders=4, customers=2")
MISSING = Problem(code=ProblemCode.MISSING_SOURCE_TOPIC, summary="orders does not exist")


def test_uneven_counts_are_tolerated_for_the_timeout_of_one_expansion() -> None:
    uneven = UnevenExpansion.of(StreamsConfig(autoscaling=True, autoscaling_timeout_ms=10_000))
    assert not uneven.is_tolerated([], 0)
    assert uneven.is_tolerated([UNEVEN], 100)
    assert uneven.is_tolerated([UNEVEN], 109.9)
    assert not uneven.is_tolerated([UNEVEN], 110)
    assert not uneven.is_tolerated([], 111)
    assert uneven.is_tolerated([UNEVEN, UNEVEN], 200)


@pytest.mark.parametrize(
    ("autoscaling", "errors"), [(False, [UNEVEN]), (True, [MISSING]), (True, [UNEVEN, MISSING])]
)
def test_other_errors_are_not_tolerated(autoscaling: bool, errors: list[Problem]) -> None:  # noqa: FBT001
    uneven = UnevenExpansion.of(StreamsConfig(autoscaling=autoscaling))
    assert not uneven.is_tolerated(errors, 0)
