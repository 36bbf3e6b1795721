"""Topics in the state that Headwater has not registered, and that Pulumi would delete."""

from pathlib import Path

import pytest

from headwater.model.problems import Problem, ProblemCode
from headwater.pulumi.planning import plan_stack
from headwater.pulumi.settings import stack_settings
from headwater.pulumi.stack_state import StackState
from tests.contract.fake_cluster import FakeCluster, FakeClusterReader

DOCUMENT = """
application: {id: shop, config: {}}
topology:
  - stream: {topic: orders}
  - groupByKey:
  - count: {materialized: counts}
"""
ROOT = "urn:pulumi:test::project::kafka:index/topic:Topic::"
SOURCE, CHANGELOG = "orders", "shop-counts-changelog"


def found(folder: Path, *topics: str, is_only_program: bool, lifecycle: str = "") -> list[Problem]:
    """Return the problems of a stack whose state has these topics in resources of others."""
    option = f", lifecycle: {lifecycle}" if lifecycle else ""
    (folder / "shop.yaml").write_text(DOCUMENT.replace("config: {}", f"config: {{}}{option}"))
    settings = stack_settings({"bootstrapServers": "b:9092", "documents": str(folder)}, environment={})
    cluster = FakeCluster()
    cluster.create("orders", 4)
    state = StackState(other_topics={f"{ROOT}{topic}": topic for topic in topics})
    planned = plan_stack(
        settings, state, lambda _: FakeClusterReader(cluster), is_only_program=is_only_program
    )
    return [each for each in planned.problems if each.code is ProblemCode.DELETION_REFUSED]


def test_a_program_that_declares_no_topic_refuses_each_topic_of_others(tmp_path: Path) -> None:
    problems = found(tmp_path, SOURCE, CHANGELOG, is_only_program=True)
    assert [each.topic for each in problems] == [SOURCE, CHANGELOG]
    assert f"pulumi state delete --force '{ROOT}{SOURCE}'" in problems[0].fix


def test_a_program_may_declare_topics_that_the_plan_does_not_manage(tmp_path: Path) -> None:
    assert found(tmp_path, SOURCE, is_only_program=False) == []


def test_a_topic_that_the_plan_manages_has_no_other_resource(tmp_path: Path) -> None:
    (problem,) = found(tmp_path, SOURCE, CHANGELOG, is_only_program=False)
    assert problem.topic == CHANGELOG
    assert "from your program" in problem.fix


@pytest.mark.parametrize("is_only_program", [False, True])
def test_no_topic_of_others_is_no_problem(tmp_path: Path, *, is_only_program: bool) -> None:
    assert found(tmp_path, is_only_program=is_only_program) == []


def test_a_released_topic_may_move_to_another_resource(tmp_path: Path) -> None:
    assert found(tmp_path, CHANGELOG, is_only_program=False, lifecycle="released") == []
