"""Joined topics of different counts: borne for a while, with autoscaling only."""

import pytest

from infra.compiler import StreamsConfig
from infra.model.problems import Problem, ProblemCode
from spark_jobs.runtime.driver.uneven_growth import UnevenGrowth

UNEVEN = Problem(code=ProblemCode.NOT_COPARTITIONED, summary="orders=4, customers=2")
GONE = Problem(code=ProblemCode.MISSING_SOURCE_TOPIC, summary="orders is gone")


def test_it_is_borne_for_the_timeout_of_one_growth() -> None:
    growth = UnevenGrowth.of(StreamsConfig(autoscaling=True, autoscaling_timeout_ms=10_000))
    assert not growth.is_borne([], 0)
    assert growth.is_borne([UNEVEN], 100)
    assert growth.is_borne([UNEVEN], 109.9)
    assert not growth.is_borne([UNEVEN], 110)
    assert not growth.is_borne([], 111)
    assert growth.is_borne([UNEVEN, UNEVEN], 200)


@pytest.mark.parametrize(
    ("autoscaling", "wrong"), [(False, [UNEVEN]), (True, [GONE]), (True, [UNEVEN, GONE])]
)
def test_nothing_else_is_borne(autoscaling: bool, wrong: list[Problem]) -> None:  # noqa: FBT001
    growth = UnevenGrowth.of(StreamsConfig(autoscaling=autoscaling))
    assert not growth.is_borne(wrong, 0)
