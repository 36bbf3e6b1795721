"""Whether a running application reads the topics of its document."""

import attrs
import pytest

from headwater.model.cluster import LiveGroup
from headwater.model.problems import Problem, ProblemCode
from headwater.planner.application import OtherSubscription, other_subscription
from tests.planner.simulated_cluster import REPARTITION, application

READ = frozenset({"orders-in", REPARTITION})
GROUP = LiveGroup("orders", "Stable", 1, assignor="stream", subscribed=READ)


def test_the_declared_topics_are_no_difference() -> None:
    assert other_subscription(application(), GROUP) is None


def test_topics_of_one_side_are_named() -> None:
    group = attrs.evolve(GROUP, subscribed=frozenset({"orders-in", "old-a", "old-b"}))
    assert other_subscription(application(), group) == OtherSubscription((REPARTITION,), ("old-a", "old-b"))


@pytest.mark.parametrize(
    "group",
    [
        attrs.evolve(GROUP, assignor="range", subscribed=frozenset({"x"})),
        attrs.evolve(GROUP, subscribed=frozenset()),
    ],
    ids=["other assignor", "joining"],
)
def test_what_a_group_does_not_show_is_not_compared(group: LiveGroup) -> None:
    assert other_subscription(application(), group) is None


def test_patterns_observed_topics_and_errors_are_not_compared() -> None:
    group = attrs.evolve(GROUP, subscribed=frozenset({"x"}))
    compiled = application()
    first, *parts = compiled.subtopologies
    pattern = attrs.evolve(first, source_patterns=("in-.*",))
    problem = Problem(code=ProblemCode.MISSING_SOURCE_TOPIC, summary="It is missing.")
    assert other_subscription(compiled, group) is not None
    assert other_subscription(attrs.evolve(compiled, subtopologies=(pattern, *parts)), group) is None
    assert other_subscription(attrs.evolve(compiled, is_observed=True), group) is None
    assert other_subscription(attrs.evolve(compiled, problems=(problem,)), group) is None


def test_global_stores_have_consumers_without_a_group() -> None:
    compiled = application()
    *parts, last = compiled.subtopologies
    only_global = attrs.evolve(last, is_global=True, sources=("rates",))
    group = attrs.evolve(GROUP, subscribed=frozenset({"orders-in"}))
    assert other_subscription(attrs.evolve(compiled, subtopologies=(*parts, only_global)), group) is None
