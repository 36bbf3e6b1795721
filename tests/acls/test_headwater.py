"""Headwater with exactly the rights that it names; without any one of them it says which one lacks."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from infra.apply import stack_settings
from infra.apply.cluster_writer import KafkaClusterWriter
from infra.apply.planning import Planned, plan_stack
from infra.apply.stack_state import StackState
from infra.cli.exit_codes import ExitCode
from infra.compiler import compile_document
from infra.model.acls import Operation, Pattern, ResourceKind, Right
from infra.model.problems import Problem, ProblemCode, errors
from infra.model.record import RecordedTopic, SetupRecord
from infra.planner.acls import Purpose, headwater_needs
from infra.spec import load_text
from tests.acls.conftest import HEADWATER
from tests.acls.secured_cluster import SecuredCluster
from tests.cli.conftest import Headwater, headwater

__all__ = ["headwater"]

pytestmark = pytest.mark.broker

PRINCIPAL = f"User:{HEADWATER.name}"
ID = "stock"
CHANGELOG, REPARTITION = f"{ID}-levels-changelog", f"{ID}-by-item-repartition"
DOCUMENT: Mapping[str, Any] = {
    "application": {
        "id": ID,
        "config": {"partition.autoscaling.enabled": True},
        "setup": {"allowUnsafeExpansion": True},
    },
    "acls": {"principals": ["User:stock"]},
    "topics": {"stock-levels": {}},
    "topology": [
        {"stream": {"topic": "movements"}},
        {"groupBy": {"key": "value.item", "name": "by-item"}},
        {"reduce": {"materialized": "levels"}},
        {"toStream": None},
        {"to": {"topic": "stock-levels"}},
    ],
}


def needs(purpose: Purpose) -> tuple[Right, ...]:
    document = load_text(yaml.safe_dump(dict(DOCUMENT)), "stock.yaml").documents[0]
    return tuple(need.right for need in headwater_needs(purpose, [compile_document(document, {})]))


@pytest.fixture(scope="module")
def grown(secured_cluster: SecuredCluster) -> SecuredCluster:
    """The source has grown, one internal topic has not, the other lacks settings, the sink is not there."""
    secured_cluster.create({"movements": 4, REPARTITION: 2, CHANGELOG: 4})
    return secured_cluster


@attrs.frozen
class Outcome:
    planned: Planned
    problems: tuple[Problem, ...]


def run(
    secured_cluster: SecuredCluster,
    rights: Iterable[Right],
    folder: Path,
    records: Mapping[str, SetupRecord] | None = None,
) -> Outcome:
    """Do what an `up` does before its first registration, as Headwater's user with these rights."""
    secured_cluster.set_acls(PRINCIPAL, rights)
    connection = secured_cluster.connection(HEADWATER)
    settings = stack_settings(
        {
            "bootstrapServers": ",".join(connection.bootstrap_servers),
            "securityProtocol": connection.protocol,
            "saslMechanism": str(connection.mechanism),
            "saslUsername": str(connection.username),
            "saslPassword": str(connection.password),
            "documents": str(folder),
        },
        secrets=("saslPassword",),
        environment={},
    )
    planned = plan_stack(settings, StackState(records=records or {}))
    if planned.plan is None or errors(planned.problems):
        return Outcome(planned, errors(planned.problems))
    return Outcome(planned, tuple(KafkaClusterWriter(connection).denials(planned.plan)))


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    (tmp_path / "stock.yaml").write_text(yaml.safe_dump(dict(DOCUMENT)))
    return tmp_path


def test_the_rights_are_enough_for_a_run_that_does_everything(grown: SecuredCluster, documents: Path) -> None:
    log = grown.log_length
    outcome = run(grown, needs(Purpose.UP), documents)
    assert outcome.problems == ()
    assert outcome.planned.plan is not None
    actions = {action.name: action for action in outcome.planned.plan.actions}
    assert actions["stock-levels"].live is None
    assert actions[REPARTITION].added_partitions == 2
    assert actions[CHANGELOG].changes
    assert grown.denials(log) == set()


def weakened(rights: Iterable[Right], lacking: Right) -> list[Right]:
    """Without a right, but with the one that came along with it."""
    others = [right for right in rights if right != lacking]
    implied = lacking.operation.implied
    return others if implied is None else [*others, attrs.evolve(lacking, operation=implied)]


def code_for(lacking: Right) -> ProblemCode:
    """The brokers' defaults are asked for, not needed, where documents say the number of replicas."""
    is_of_brokers = lacking.kind is ResourceKind.CLUSTER and lacking.operation is Operation.DESCRIBE_CONFIGS
    return ProblemCode.REPLICATION_FACTOR if is_of_brokers else ProblemCode.NOT_AUTHORIZED


def names_it(problem: Problem, lacking: Right) -> bool:
    """Whether the problem tells to grant just this."""
    if lacking.kind is ResourceKind.CLUSTER:
        return f"{lacking.operation} on the cluster" in problem.fix
    word = lacking.kind.lower()
    prefix = f"Grant the user {lacking.operation} on {word} {lacking.name}"
    return problem.fix.startswith(prefix)


@pytest.mark.parametrize("lacking", needs(Purpose.UP), ids=lambda right: right.text.replace(" ", "-"))
def test_a_run_that_lacks_one_is_refused_before_it_begins(
    grown: SecuredCluster, documents: Path, lacking: Right
) -> None:
    problems = run(grown, weakened(needs(Purpose.UP), lacking), documents).problems
    assert problems
    assert all(names_it(problem, lacking) for problem in problems), problems
    assert {problem.code for problem in problems} == {code_for(lacking)}


@pytest.mark.parametrize("lacking", needs(Purpose.PLAN), ids=lambda right: right.text.replace(" ", "-"))
def test_a_plan_that_may_not_see_everything_is_refused(
    grown: SecuredCluster, documents: Path, lacking: Right
) -> None:
    problems = run(grown, weakened(needs(Purpose.PLAN), lacking), documents).problems
    assert {problem.code for problem in problems} == {code_for(lacking)}
    assert all(names_it(problem, lacking) for problem in problems), problems


@pytest.mark.parametrize("command", ["plan", "drift"])
def test_the_commands_read_with_the_rights_to_read(
    grown: SecuredCluster, documents: Path, headwater: Headwater, command: str
) -> None:
    connection = grown.connection(HEADWATER)
    (documents / "client.properties").write_text(
        f"bootstrap.servers={','.join(connection.bootstrap_servers)}\n"
        f"security.protocol={connection.protocol}\nsasl.mechanism={connection.mechanism}\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{HEADWATER.name}" password="{HEADWATER.password}";\n'
    )
    arguments = (command, documents / "stock.yaml", "--command-config", documents / "client.properties")
    grown.set_acls(PRINCIPAL, needs(Purpose.PLAN))
    log = grown.log_length
    done = headwater(*arguments)
    assert "User:stock Read Topic movements" in done.stdout, done.stderr
    assert done.returncode == {"plan": ExitCode.DONE, "drift": ExitCode.DRIFT}[command], done.stderr
    assert grown.denials(log) == set()
    lacking = Right(ResourceKind.TOPIC, f"{ID}-", Operation.DESCRIBE, Pattern.PREFIXED)
    configs = attrs.evolve(lacking, operation=Operation.DESCRIBE_CONFIGS)
    for each in (lacking, configs):
        grown.set_acls(PRINCIPAL, [right for right in needs(Purpose.PLAN) if right != each])
        refused = headwater(*arguments)
        assert refused.returncode == ExitCode.PROBLEMS
        assert f"Grant the user {each.operation} on topic {ID}-" in " ".join(refused.stderr.split())


def test_deleting_needs_its_own_right(grown: SecuredCluster, tmp_path: Path) -> None:
    topics = {name: RecordedTopic(name, "", 4) for name in (CHANGELOG, REPARTITION)}
    retired = {ID: SetupRecord(ID, topics, 4, retired=True)}
    needed = [right for right in needs(Purpose.RETIRE) if right.kind is not ResourceKind.CLUSTER]
    assert run(grown, needed, tmp_path, retired).problems == ()
    lacking = Right(ResourceKind.TOPIC, f"{ID}-", Operation.DELETE)
    problems = run(grown, needs(Purpose.UP), tmp_path, retired).problems
    assert {problem.topic for problem in problems} == {CHANGELOG, REPARTITION}
    assert all(names_it(problem, lacking) for problem in problems)
