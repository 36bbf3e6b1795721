"""Headwater with exactly the permissions that it lists, and its problems without each single one of them."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import attrs
import pytest
import yaml

from headwater.change.ownership import write_ownership
from headwater.cli.console import ExitCode
from headwater.compiler import build_nodes, compile_document
from headwater.describe import write_description
from headwater.kafka import KafkaClusterReader, SnapshotRequest
from headwater.model.acls import Operation, Pattern, Permission, ResourceKind
from headwater.model.problems import Problem, ProblemCode, Severity, errors
from headwater.model.records import (
    OWNERSHIP_TOPIC,
    RECORD_TOPIC_SETTINGS,
    OwnershipChange,
    OwnershipRecord,
    OwnershipTopic,
    RecordedTopic,
    SetupRecord,
    StackIdentity,
)
from headwater.planner.acls import Purpose, headwater_needs
from headwater.pulumi import stack_settings
from headwater.pulumi.cluster_writer import KafkaClusterWriter, claim_applications, protect_records
from headwater.pulumi.planning import Planned, plan_stack
from headwater.pulumi.stack_state import StackState
from headwater.spec import load_text
from headwater.toolchain.broker.readiness import until
from tests.acls.conftest import HEADWATER
from tests.acls.secured_cluster import SecuredCluster
from tests.cli.conftest import Headwater, headwater
from tests.contract.real_cluster import RealCluster

__all__ = ["headwater"]

pytestmark = pytest.mark.broker

_SECONDS = 90
PRINCIPAL = f"User:{HEADWATER.name}"
ID = "stock"
# Only needed if the topic of the records is missing, or has other settings.
CREATE_RECORDS = Permission(ResourceKind.TOPIC, OWNERSHIP_TOPIC, Operation.CREATE)
PROTECT_RECORDS = Permission(ResourceKind.TOPIC, OWNERSHIP_TOPIC, Operation.ALTER_CONFIGS)
OWNERSHIP_GROUP = Permission(ResourceKind.GROUP, OWNERSHIP_TOPIC, Operation.DESCRIBE)
OTHER = OwnershipRecord(application_id="other", stack=StackIdentity("other", "organization/headwater/other"))
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

PROCESSORS: Mapping[str, Any] = {
    "application": {"id": "SUMS", "processors": 4, "config": {"processing.guarantee": "exactly_once_v2"}},
    "topology": [
        {"stream": {"topic": "AMOUNTS"}},
        {"groupByKey": None},
        {"count": {"materialized": "totals"}},
    ],
}


def needs(purpose: Purpose) -> tuple[Permission, ...]:
    document = load_text(yaml.safe_dump(dict(DOCUMENT)), "stock.yaml").documents[0]
    return tuple(need.permission for need in headwater_needs(purpose, [compile_document(document, {})]))


@pytest.fixture(scope="module")
def cluster(secured_cluster: SecuredCluster) -> SecuredCluster:
    """A cluster that needs each kind of change.

    The source has more partitions than one internal topic, both have other configs, and the sink is missing.
    """
    secured_cluster.create({"movements": 4})
    # Settings of Kafka Streams, with other values.
    created = {
        "cleanup.policy": "compact,delete",
        "message.timestamp.type": "CreateTime",
        "retention.ms": "-1",
    }
    secured_cluster.create({REPARTITION: 2, CHANGELOG: 4}, created)
    write_ownership(secured_cluster.superuser, OwnershipChange((OTHER,)))
    return secured_cluster


_OWN_NAMES = ("stock", "movements", OWNERSHIP_TOPIC, "kafka-cluster")


def _own_denials(cluster: SecuredCluster, start: int) -> set[Permission]:
    """Return what was denied to this module: clients of other modules may still ask for their groups."""
    return {denied for denied in cluster.denials(start) if denied.name.startswith(_OWN_NAMES)}


@attrs.frozen
class Outcome:
    planned: Planned
    problems: tuple[Problem, ...]


def run(
    secured_cluster: SecuredCluster,
    permissions: Iterable[Permission],
    folder: Path,
    records: Mapping[str, SetupRecord] | None = None,
    stack: StackIdentity | None = None,
) -> Outcome:
    """Run `pulumi up` as Headwater's user with these permissions, until the first registration."""
    secured_cluster.set_acls(PRINCIPAL, permissions)
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
    # No run finishes, so each one claims the application again, with a new id.
    stack = stack or StackIdentity(uuid4().hex, "organization/headwater/test")
    planned = plan_stack(settings, StackState(records=records or {}), stack=stack)
    if planned.plan is None or errors(planned.problems):
        return Outcome(planned, errors(planned.problems))
    writer = KafkaClusterWriter(connection)
    denied = (
        writer.find_refusals(planned.plan, with_permissions=True)
        or protect_records(planned.plan, writer)
        or claim_applications(planned.plan, KafkaClusterReader(connection), writer)
    )
    return Outcome(planned, tuple(denied))


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    (tmp_path / "stock.yaml").write_text(yaml.safe_dump(dict(DOCUMENT)))
    return tmp_path


@pytest.mark.every_broker
def test_the_listed_permissions_are_sufficient_for_a_run_with_each_kind_of_change(
    cluster: SecuredCluster, documents: Path
) -> None:
    log = cluster.log_length
    outcome = run(cluster, needs(Purpose.UP), documents)
    assert outcome.problems == ()
    assert outcome.planned.plan is not None
    actions = {action.name: action for action in outcome.planned.plan.actions}
    assert actions["stock-levels"].live is None
    assert actions[REPARTITION].added_partitions == 2
    assert actions[CHANGELOG].changes
    assert _own_denials(cluster, log) == set()


def test_an_imported_application_needs_no_other_permissions(cluster: SecuredCluster, tmp_path: Path) -> None:
    """The text of a topology has the internal topics without the application's prefix."""
    (document,) = load_text(yaml.safe_dump(dict(DOCUMENT)), "stock.yaml").documents
    imported = {name: part for name, part in DOCUMENT.items() if name != "topology"}
    imported["describe"] = {
        "text": write_description(build_nodes(document)),
        "stores": {"levels": {"kind": "timestampedKeyValue"}},
    }
    (tmp_path / "stock.yaml").write_text(yaml.safe_dump(imported))
    log = cluster.log_length
    outcome = run(cluster, needs(Purpose.UP), tmp_path)
    assert outcome.problems == ()
    assert _own_denials(cluster, log) == set()


def without_permission(permissions: Iterable[Permission], missing: Permission) -> list[Permission]:
    """Return the permissions without one, but with the permission that this one implies."""
    others = [permission for permission in permissions if permission != missing]
    implied = missing.operation.implied
    return others if implied is None else [*others, attrs.evolve(missing, operation=implied)]


def code_for(missing: Permission) -> ProblemCode:
    """Return the expected code. Without the defaults of the brokers, replication factors are not known."""
    is_of_brokers = missing.kind is ResourceKind.CLUSTER and missing.operation is Operation.DESCRIBE_CONFIGS
    return ProblemCode.REPLICATION_FACTOR if is_of_brokers else ProblemCode.NOT_AUTHORIZED


def names_permission(problem: Problem, missing: Permission) -> bool:
    """Return whether the fix is to grant exactly this permission."""
    if missing.kind is ResourceKind.CLUSTER:
        return f"{missing.operation} on the cluster" in problem.fix
    word = missing.kind.lower()
    prefix = f"Grant the user {missing.operation} on {word} {missing.name}"
    return problem.fix.startswith(prefix)


def refused(
    cluster: SecuredCluster, permissions: Iterable[Permission], missing: Permission, documents: Path
) -> tuple[Problem, ...]:
    """Run without one of the permissions; return the problems.

    A consumer may read all records before it receives the refusal of its group: such a run is repeated.
    """
    granted, problems = without_permission(permissions, missing), list[Problem]()

    def is_refused() -> bool:
        problems[:] = run(cluster, granted, documents).problems
        return any(names_permission(problem, missing) for problem in problems)

    until(is_refused, _SECONDS if missing == OWNERSHIP_GROUP else 0)
    return tuple(problems)


@pytest.mark.parametrize(
    "missing",
    [permission for permission in needs(Purpose.UP) if permission not in (CREATE_RECORDS, PROTECT_RECORDS)],
    ids=lambda each: each.text.replace(" ", "-"),
)
def test_a_run_without_one_of_the_permissions_is_refused_before_it_changes_anything(
    cluster: SecuredCluster, documents: Path, missing: Permission
) -> None:
    problems = refused(cluster, needs(Purpose.UP), missing, documents)
    assert problems
    assert all(names_permission(problem, missing) for problem in problems), problems
    assert {problem.code for problem in problems} == {code_for(missing)}


@pytest.mark.parametrize("missing", needs(Purpose.PLAN), ids=lambda each: each.text.replace(" ", "-"))
def test_a_plan_without_one_of_the_permissions_is_refused(
    cluster: SecuredCluster, documents: Path, missing: Permission
) -> None:
    problems = refused(cluster, needs(Purpose.PLAN), missing, documents)
    assert {problem.code for problem in problems} == {code_for(missing)}
    assert all(names_permission(problem, missing) for problem in problems), problems


def _client_properties(cluster: SecuredCluster, folder: Path, password: str) -> Path:
    """Write the settings of a client that connects as Headwater's user."""
    connection, file = cluster.connection(HEADWATER), folder / "client.properties"
    file.write_text(
        f"bootstrap.servers={','.join(connection.bootstrap_servers)}\n"
        f"security.protocol={connection.protocol}\nsasl.mechanism={connection.mechanism}\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{HEADWATER.name}" password="{password}";\n'
    )
    return file


@pytest.mark.parametrize("command", ["plan", "drift"])
def test_plan_and_drift_need_only_the_permissions_to_read(
    cluster: SecuredCluster, documents: Path, headwater: Headwater, command: str
) -> None:
    connection = cluster.connection(HEADWATER)
    config = _client_properties(cluster, documents, HEADWATER.password)
    arguments = (command, documents / "stock.yaml", "--command-config", config)
    cluster.set_acls(PRINCIPAL, needs(Purpose.PLAN))
    log = cluster.log_length
    done = headwater(*arguments)
    assert "User:stock Read Topic movements" in done.stdout, done.stderr
    assert done.returncode == {"plan": ExitCode.DONE, "drift": ExitCode.DRIFT}[command], done.stderr
    # the brokers validate a plan: without permission to change topics, they only log the attempt
    read = KafkaClusterReader(connection).read(SnapshotRequest(prefixes=(f"{ID}-",)))
    assert read.registered is not None, "the brokers name all of them to each user"
    attempts = {Operation.CREATE, Operation.ALTER, Operation.ALTER_CONFIGS} if command == "plan" else set()
    assert {denied.operation for denied in _own_denials(cluster, log)} <= attempts
    missing = Permission(ResourceKind.TOPIC, f"{ID}-", Operation.DESCRIBE, Pattern.PREFIXED)
    configs = attrs.evolve(missing, operation=Operation.DESCRIBE_CONFIGS)
    for each in (missing, configs):
        cluster.set_acls(PRINCIPAL, [permission for permission in needs(Purpose.PLAN) if permission != each])
        refused = headwater(*arguments)
        assert refused.returncode == ExitCode.PROBLEMS
        assert f"Grant the user {each.operation} on topic {ID}-" in " ".join(refused.stderr.split())


def test_no_format_of_drift_shows_the_password(
    cluster: SecuredCluster, documents: Path, headwater: Headwater
) -> None:
    cluster.set_acls(PRINCIPAL, needs(Purpose.PLAN))
    for password, code, forms in (
        (HEADWATER.password, ExitCode.DRIFT, ("text", "json", "markdown", "html", "junit")),
        (f"{HEADWATER.password}-mistyped", ExitCode.PROBLEMS, ("text", "json")),
    ):
        config = _client_properties(cluster, documents, password)
        for form in forms:
            done = headwater("drift", documents / "stock.yaml", "--command-config", config, "--format", form)
            assert done.returncode == code, done.stderr
            assert HEADWATER.password not in done.stdout + done.stderr


def test_an_expansion_of_processors_is_estimated_with_the_permissions_of_a_plan(
    cluster: SecuredCluster, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    sums, amounts = unique("sums"), unique("amounts")
    text = yaml.safe_dump(PROCESSORS).replace("SUMS", sums).replace("AMOUNTS", amounts)
    (tmp_path / "sums.yaml").write_text(text)
    cluster.create({amounts: 4, f"{sums}-totals-changelog": 2})
    cluster.produce(f"{sums}-totals-changelog", 40)
    compiled = compile_document(load_text(text, "sums.yaml").documents[0], {amounts: 4})
    permissions = [need.permission for need in headwater_needs(Purpose.PLAN, [compiled])]
    log = cluster.log_length
    plan = run(cluster, permissions, tmp_path).planned.plan
    assert plan is not None
    estimate = "about 40 changelog records to read (about 10 seconds)"
    assert f"sub-topology 0: 2 of 4 processors for 4 partitions, {estimate}" in plan.applications[0].notes
    assert Operation.DESCRIBE not in {denied.operation for denied in _own_denials(cluster, log)}


def test_deleting_topics_needs_an_additional_permission(
    cluster: SecuredCluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    ids = KafkaClusterReader(cluster.superuser).topic_ids([CHANGELOG, REPARTITION])
    topics = {name: RecordedTopic(name, id_, 4) for name, id_ in ids.items()}
    retired = {ID: SetupRecord(ID, topics, 4, retired=True)}
    stack = StackIdentity("deleting", "organization/headwater/test")
    owned = OwnershipRecord(application_id=ID, stack=stack, topics=ids, is_retired=True)
    request.addfinalizer(lambda: write_ownership(cluster.superuser, OwnershipChange(deleted=(owned.key,))))
    write_ownership(cluster.superuser, OwnershipChange((owned,)))
    needed = [
        permission for permission in needs(Purpose.RETIRE) if permission.kind is not ResourceKind.CLUSTER
    ]
    log = cluster.log_length
    assert run(cluster, needed, tmp_path, retired, stack).problems == ()
    assert {denied.kind for denied in _own_denials(cluster, log)} <= {ResourceKind.CLUSTER}
    missing = Permission(ResourceKind.TOPIC, f"{ID}-", Operation.DELETE)
    without = [permission for permission in needed if permission.operation is not Operation.DELETE]
    problems = run(cluster, without, tmp_path, retired, stack).problems
    assert {problem.topic for problem in problems} == {CHANGELOG, REPARTITION}
    assert all(names_permission(problem, missing) for problem in problems)
    # Without the evidence nothing is deleted, and the reason is the permission.
    for denied, text in (
        (Permission(ResourceKind.GROUP, "*", Operation.DESCRIBE), "Describe on group *"),
        (
            PROTECT_RECORDS,
            f"DescribeConfigs on topic {OWNERSHIP_TOPIC}",
        ),
    ):
        own = Permission(ResourceKind.GROUP, ID, Operation.DESCRIBE)
        others = (permission for permission in needed if permission != denied)
        granted = [*others, own, OWNERSHIP_GROUP]
        problems = run(cluster, granted, tmp_path, retired, stack).problems
        assert {problem.code for problem in problems} == {ProblemCode.DELETION_REFUSED}
        assert all(text in (problem.found or "") for problem in problems), problems


def test_the_first_run_on_a_cluster_creates_the_topic_of_ownership_records(
    cluster: SecuredCluster, documents: Path
) -> None:
    if OWNERSHIP_TOPIC in cluster.topics():
        cluster.delete(OWNERSHIP_TOPIC)
    (problem,) = run(cluster, without_permission(needs(Purpose.UP), CREATE_RECORDS), documents).problems
    assert names_permission(problem, CREATE_RECORDS)
    assert run(cluster, needs(Purpose.UP), documents).problems == ()
    write_ownership(cluster.superuser, OwnershipChange((OTHER,)))


def test_the_settings_of_the_topic_of_the_records_are_repaired_or_the_run_is_refused(
    cluster: SecuredCluster, documents: Path, request: pytest.FixtureRequest
) -> None:
    admin = RealCluster(",".join(cluster.superuser.bootstrap_servers))
    reader = KafkaClusterReader(cluster.superuser)

    def topic() -> OwnershipTopic:
        return reader.read(SnapshotRequest(with_ownership=True)).ownership_topic

    request.addfinalizer(lambda: admin.configure(OWNERSHIP_TOPIC, RECORD_TOPIC_SETTINGS))
    assert not topic().changes
    admin.configure(OWNERSHIP_TOPIC, {"cleanup.policy": "delete", "max.message.bytes": "100000000"})
    unprotected = topic()
    assert unprotected.changes.keys() == {"cleanup.policy", "max.message.bytes"}
    permissions = without_permission(needs(Purpose.UP), PROTECT_RECORDS)
    (problem,) = run(cluster, permissions, documents).problems
    assert problem.severity is Severity.ERROR
    assert names_permission(problem, PROTECT_RECORDS), problem.found
    assert topic() == unprotected
    done = run(cluster, needs(Purpose.UP), documents)
    assert done.problems == ()
    assert ProblemCode.RECORDS_NOT_SAFE in {problem.code for problem in done.planned.problems}
    assert not topic().changes
    admin.configure(OWNERSHIP_TOPIC, {"max.message.bytes": "1000000"})
    (problem,) = run(cluster, permissions, documents).problems
    assert problem.severity is Severity.WARNING
