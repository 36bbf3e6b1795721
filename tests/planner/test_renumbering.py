"""Internal topics whose generated names have other numbers after a change of the topology."""

from collections.abc import Mapping

import attrs

from headwater.model.compiled import CompiledApplication
from headwater.model.problems import ProblemCode
from headwater.model.topology import Setup
from headwater.planner import ActionKind
from tests.planner.plans import codes, kinds, warnings
from tests.planner.simulated_cluster import MANUAL, SimulatedCluster, application, changelog


def renumbered(index: int, config: Mapping[str, str], setup: Setup | None = None) -> CompiledApplication:
    name = f"orders-KSTREAM-AGGREGATE-STATE-STORE-{index:010}-changelog"
    return application(config=config, setup=setup, topics=[attrs.evolve(changelog(name, 4), generated=True)])


def test_renumbered_topics_are_an_error_when_set_up_manually() -> None:
    cluster = SimulatedCluster.set_up(renumbered(3, MANUAL))
    assert codes(cluster.plan(renumbered(5, MANUAL))) == [ProblemCode.RENUMBERED]
    accepted = cluster.up(renumbered(5, MANUAL, Setup(reinitialize=True)))
    assert [problem.code for problem in warnings(accepted)] == [ProblemCode.RENUMBERED]
    assert not cluster.plan(renumbered(5, MANUAL)).problems


def test_renumbered_topics_are_a_warning_when_set_up_automatically() -> None:
    cluster = SimulatedCluster.set_up(renumbered(3, {}))
    plan = cluster.up(renumbered(5, {}))
    assert [problem.code for problem in warnings(plan)] == [ProblemCode.RENUMBERED]
    assert set(kinds(plan).values()) == {ActionKind.CREATE, ActionKind.KEEP}
    assert not cluster.plan(renumbered(5, {})).problems
