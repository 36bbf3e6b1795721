"""Resources in the state that Headwater has not registered, and that Pulumi would delete."""

from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from headwater.model.acls import Acl, Operation, Permission, ResourceKind
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.pulumi.planning import plan_stack
from headwater.pulumi.program import export_stack_state
from headwater.pulumi.settings import stack_settings
from headwater.pulumi.stack_state import StackState, acl_inputs
from tests.contract.fake_cluster import FakeCluster, FakeClusterReader

DOCUMENT = """
application: {id: shop, config: {}}
acls: {principals: ["User:shop"]}
topology:
  - stream: {topic: orders}
  - groupByKey:
  - count: {materialized: counts}
"""
ROOT = "urn:pulumi:test::project::"
TOPIC, ACL = "kafka:index/topic:Topic", "kafka:index/acl:Acl"
SOURCE, CHANGELOG = "orders", "shop-counts-changelog"
READ = Permission(ResourceKind.TOPIC, "orders", Operation.READ)
DENIED = {**acl_inputs(Acl("User:shop", "*", READ)), "aclPermissionType": "Deny"}

State = Mapping[str, Mapping[str, object]]
Resource = tuple[str, Mapping[str, object]]


def resource(
    type_: str, name: str, outputs: Mapping[str, object] | None = None, **properties: bool
) -> Resource:
    return f"{ROOT}{type_}::{name}", {"type": type_, "outputs": outputs or {"name": name}, **properties}


def found(
    folder: Path,
    *resources: Resource,
    is_only_program: bool,
    lifecycle: str = "",
    exported: State | None = None,
) -> list[Problem]:
    """Return the problems of a stack with these resources of others in its state."""
    option = f", lifecycle: {lifecycle}" if lifecycle else ""
    (folder / "shop.yaml").write_text(DOCUMENT.replace("config: {}", f"config: {{}}{option}"))
    settings = stack_settings({"bootstrapServers": "b:9092", "documents": str(folder)}, environment={})
    cluster = FakeCluster()
    cluster.create("orders", 4)
    planned = plan_stack(
        settings,
        StackState.from_outputs(dict(resources)),
        lambda _: FakeClusterReader(cluster),
        is_only_program=is_only_program,
        export=lambda: exported,
    )
    return [each for each in planned.problems if each.code is ProblemCode.DELETION_REFUSED]


def test_a_program_that_declares_no_topic_refuses_each_topic_of_others(tmp_path: Path) -> None:
    topics = (resource(TOPIC, SOURCE), resource(TOPIC, CHANGELOG))
    problems = found(tmp_path, *topics, is_only_program=True)
    assert [each.topic for each in problems] == [SOURCE, CHANGELOG]
    assert f"pulumi state delete --force '{ROOT}{TOPIC}::{SOURCE}'" in problems[0].fix


@pytest.mark.parametrize(
    "type_",
    [
        "kafka:index/acl:Acl",
        "kafka:index/quota:Quota",
        "kafka:index/userScramCredential:UserScramCredential",
        "confluentcloud:index/kafkaTopic:KafkaTopic",
    ],
)
def test_what_is_part_of_a_cluster_is_refused_even_if_the_state_cannot_be_exported(
    tmp_path: Path, type_: str
) -> None:
    (problem,) = found(tmp_path, resource(type_, "it"), is_only_program=True)
    assert f"pulumi state delete --force '{ROOT}{type_}::it'" in problem.fix
    assert found(tmp_path, resource(type_, "it"), is_only_program=False) == []


def test_any_resource_is_refused_that_pulumi_deletes_as_the_exported_state_shows(tmp_path: Path) -> None:
    known = resource("aws:s3/bucket:Bucket", "files", custom=True)
    (problem,) = found(tmp_path, known, is_only_program=True)
    assert f"pulumi destroy --target '{known[0]}'" in problem.fix
    unknown = resource("aws:s3/bucket:Bucket", "files")
    assert found(tmp_path, unknown, is_only_program=True) == []
    assert len(found(tmp_path, unknown, is_only_program=True, exported=dict([known]))) == 1


def test_the_exported_state_of_another_stack_hides_and_adds_no_resource(tmp_path: Path) -> None:
    exported = dict([resource("aws:s3/bucket:Bucket", "theirs", custom=True)])
    (problem,) = found(tmp_path, resource(TOPIC, SOURCE), is_only_program=True, exported=exported)
    assert problem.topic == SOURCE


def test_a_warning_says_that_the_state_cannot_be_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of a run, Pulumi's SDK names no folder of a project."""
    warnings: list[str] = []
    monkeypatch.setattr("pulumi.log.warn", warnings.append)  # other tests leave an engine that receives logs
    assert export_stack_state() is None
    (text,) = warnings
    assert text.startswith("`pulumi stack export` failed")


@pytest.mark.parametrize("is_only_program", [False, True])
@pytest.mark.parametrize("reason", ["external", "retainOnDelete"])
def test_a_topic_that_is_only_read_or_stays_is_no_problem(
    tmp_path: Path, reason: str, *, is_only_program: bool
) -> None:
    known, unknown = (
        resource(
            TOPIC, CHANGELOG, custom=True, external=reason == "external", retainOnDelete=reason != "external"
        ),
        resource(TOPIC, CHANGELOG),
    )
    assert found(tmp_path, known, is_only_program=is_only_program) == []
    assert found(tmp_path, unknown, is_only_program=is_only_program, exported=dict([known])) == []


def test_a_program_may_declare_topics_that_the_plan_does_not_manage(tmp_path: Path) -> None:
    assert found(tmp_path, resource(TOPIC, SOURCE), is_only_program=False) == []


@pytest.mark.parametrize("type_", [TOPIC, "confluentcloud:index/kafkaTopic:KafkaTopic"])
def test_a_topic_that_the_plan_manages_has_no_other_resource(tmp_path: Path, type_: str) -> None:
    topics = (resource(type_, SOURCE), resource(type_, CHANGELOG))
    (problem,) = found(tmp_path, *topics, is_only_program=False)
    assert problem.topic == CHANGELOG
    assert "from your program" in problem.fix


@pytest.mark.parametrize("is_only_program", [False, True])
def test_no_resource_of_others_is_no_problem(tmp_path: Path, *, is_only_program: bool) -> None:
    assert found(tmp_path, is_only_program=is_only_program) == []


def test_a_released_topic_may_move_to_another_resource(tmp_path: Path) -> None:
    topic = resource(TOPIC, CHANGELOG)
    assert found(tmp_path, topic, is_only_program=False, lifecycle="released") == []


def test_a_second_resource_of_a_managed_acl_is_a_warning(tmp_path: Path) -> None:
    own = resource(ACL, "own", acl_inputs(Acl("User:shop", "*", READ)))
    others = acl_inputs(Acl("User:shop", "*", attrs.evolve(READ, name="other")))
    ignored = (resource(ACL, "denied", DENIED), resource(ACL, "other", others))
    (problem,) = found(tmp_path, own, *ignored, is_only_program=False)
    assert (problem.severity, problem.found) == (Severity.WARNING, own[0])
