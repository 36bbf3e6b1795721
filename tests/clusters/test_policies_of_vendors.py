"""Plans, and topics of Headwater's own records, on a real cluster with a policy.

It refuses topics as Amazon MSK Serverless does, and a setting of the records, as Confluent Cloud does.
"""

import os
import re
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import attrs
import pytest
import yaml
from click.testing import CliRunner, Result
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from headwater.agent.leadership import KafkaLeadership
from headwater.change import admin_client, request_new_topics
from headwater.change.ownership import configure_topic, write_ownership
from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.kafka import Connection, KafkaClusterReader
from headwater.kafka.reader import SnapshotRequest
from headwater.model.cluster_profiles import PROFILES
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.model.records import (
    OWNERSHIP_TOPIC,
    RECORD_TOPIC_SETTINGS,
    OwnershipChange,
    OwnershipRecord,
    StackIdentity,
)
from headwater.operations.observation import observe_cluster
from headwater.operations.planning import plan_documents
from headwater.planner import PlanPolicy, plan
from headwater.spec import load_documents
from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker import launch
from headwater.toolchain.broker.readiness import until
from headwater.toolchain.cache import Cache, fingerprint
from headwater.toolchain.commands import Progress
from tests.kafka.several_brokers import several_brokers
from tests.oracle.kafka_streams import VERSION
from tests.quick_java import QUICK_JAVAC
from tests.streams_library.application import TestedApplication
from tests.streams_library.applications import Applications
from tests.streams_library.conftest import applications_of

__all__ = ["applications_of"]  # a fixture

pytestmark = pytest.mark.broker
_POLICY = Path(__file__).parent / "TopicPolicy.java"
_JAR = "policy.jar"
_SERVERLESS = PROFILES["msk-serverless"]
_SECONDS = 90
_STEPS = [
    {"stream": {"topic": "orders"}},
    {"groupBy": {"key": "value.customer", "name": "by-customer"}},
    {"windowedBy": {"tumbling": {"size": "1h"}}},
    {"count": {"materialized": "counts"}},
]
_TOPICS = ("app-by-customer-repartition", "app-counts-changelog")
_RECORD = OwnershipRecord(
    application_id="orders",
    stack=StackIdentity("its id", "acme/headwater/production"),
    topics={"orders-counts-changelog": "topic id"},
)


@attrs.frozen(kw_only=True)
class _WithPolicy(KafkaDistribution):
    """Kafka with the compiled policy behind its jars, so that the archive of its classes can be used."""

    policy: Path

    @property
    def class_path(self) -> str:
        return f"{self.jars / '*'}{os.pathsep}{self.policy}"


@pytest.fixture(scope="module")
def with_policy(kafka_distribution: KafkaDistribution) -> KafkaDistribution:
    """Return Kafka with the policy, which is compiled once on a machine."""

    def compile_policy(folder: Path, _: Progress) -> None:
        classes = folder / "classes"
        compile_with_kafka = ("--release", "17", "-cp", kafka_distribution.class_path, "-d", classes)
        subprocess.run(["javac", *QUICK_JAVAC, *compile_with_kafka, _POLICY], check=True)
        with zipfile.ZipFile(folder / _JAR, "w") as archive:
            for file in classes.iterdir():
                archive.write(file, file.name)

    entry = f"topic-policy-{fingerprint(str(kafka_distribution.jars), _POLICY.read_bytes())}"
    folder = Cache().ensure(entry, compile_policy, Progress())
    return _WithPolicy(**attrs.asdict(kafka_distribution), policy=folder / _JAR)


@pytest.fixture(scope="module")
def cluster(with_policy: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the bootstrap servers of three brokers with the policy and the topic `orders`."""
    policy = {
        "create.topic.policy.class.name": "TopicPolicy$Create",
        "alter.config.policy.class.name": "TopicPolicy$Alter",
        "test.policy.settable": ",".join(sorted(_SERVERLESS.settable or ())),
        "test.policy.replicas": str(_SERVERLESS.replication_factor),
        "test.policy.refused": "compression.type",
    }
    with several_brokers(with_policy, tmp_path_factory.mktemp("brokers"), policy) as brokers:
        servers = brokers[0].bootstrap_servers
        create(servers, "orders", {})
        yield servers


@cache
def admin_of(servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": servers, "log_level": 0})


def create(servers: str, name: str, config: Mapping[str, str], partitions: int = 4) -> None:
    admin_of(servers).create_topics([NewTopic(name, partitions, 3, config=dict(config))])[name].result()
    await_topics(servers, {name})


def await_topics(servers: str, names: set[str]) -> None:
    assert until(lambda: names <= admin_of(servers).list_topics(timeout=60).topics.keys(), _SECONDS)


@pytest.fixture
def created(cluster: str) -> Iterator[Mapping[str, Mapping[str, str]]]:
    """Create the internal topics as a user would for such a cluster, and delete them at the end."""
    hour_and_day = str(25 * 3_600_000)
    topics = {
        _TOPICS[0]: {
            "cleanup.policy": "delete",
            "message.timestamp.type": "CreateTime",
            "retention.ms": "-1",
        },
        _TOPICS[1]: {
            "cleanup.policy": "compact,delete",
            "message.timestamp.type": "CreateTime",
            "retention.ms": hour_and_day,
        },
    }
    made: list[str] = []
    try:
        for name, config in topics.items():
            create(cluster, name, config)
            made.append(name)
        yield topics
    finally:
        for future in admin_of(cluster).delete_topics(made).values() if made else ():
            future.result()
        assert until(lambda: not set(made) & set(admin_of(cluster).list_topics(timeout=60).topics), _SECONDS)


Run = Callable[..., Result]


@pytest.fixture
def run(cluster: str, tmp_path: Path) -> Run:
    """Return a function that writes a document and runs a command for it."""

    def run_command(
        command: str,
        config: Mapping[str, object],
        steps: list[dict[str, object]] | None = None,
        **more: object,
    ) -> Result:
        application = {"id": "app", "config": config, **more}
        file = tmp_path / "app.yaml"
        file.write_text(yaml.safe_dump({"application": application, "topology": steps or _STEPS}))
        return CliRunner().invoke(main, [command, str(file), "--bootstrap-server", cluster])

    return run_command


def test_what_kafka_streams_sends_is_refused_before_anything_changes(run: Run) -> None:
    """Kafka Streams itself fails with this answer, and so would `pulumi up`."""
    planned = run("plan", {})
    assert planned.exit_code == ExitCode.REFUSED
    assert "error[RefusedByBrokers]" in planned.stderr
    assert "segment.bytes cannot be set on this cluster" in planned.stderr
    assert "application.clusterProfile" in planned.stderr


@pytest.mark.parametrize(
    ("config", "more"),
    [({"topic.segment.bytes": None}, {}), ({}, {"clusterProfile": "msk-serverless"})],
    ids=["absent setting", "profile"],
)
def test_the_brokers_accept_the_plan_without_the_refused_setting(
    run: Run, config: Mapping[str, object], more: Mapping[str, object]
) -> None:
    planned = run("plan", config, **more)
    assert planned.exit_code == ExitCode.DONE, planned.output
    assert "2 to create" in planned.stdout


@pytest.mark.usefixtures("created")
def test_automatic_setup_promises_no_setting_that_the_brokers_refuse(run: Run) -> None:
    refused = run("plan", {"internal.topics.setup": "automatic"})
    assert refused.exit_code == ExitCode.REFUSED
    assert "segment.bytes cannot be set on this cluster" in refused.stderr
    planned = run("plan", {"internal.topics.setup": "automatic"}, clusterProfile="msk-serverless")
    assert planned.exit_code == ExitCode.DONE, planned.output
    assert "segment.bytes" not in planned.output
    assert "cluster profile msk-serverless (declared)" in planned.stdout


@pytest.mark.usefixtures("created")
def test_topics_without_the_refused_setting_are_no_drift(run: Run) -> None:
    assert run("drift", {}).exit_code == ExitCode.DRIFT
    assert run("drift", {}, clusterProfile="msk-serverless").exit_code == ExitCode.DONE


def test_a_setting_that_kafka_streams_relies_on_is_an_error_of_the_document(run: Run) -> None:
    store = {"kind": "versionedKeyValue", "name": "v", "retention": "1h"}
    versioned = [{"table": {"topic": "orders", "materialized": {"supplier": store}}}]
    planned = run("plan", {}, versioned, clusterProfile="msk-serverless")
    assert planned.exit_code == ExitCode.REFUSED
    assert "error[NotOnCluster]" in planned.stderr
    assert "min.compaction.lag.ms" in planned.stderr


def test_another_number_of_replicas_is_an_error_of_the_document(run: Run) -> None:
    planned = run("plan", {"replication.factor": 2}, clusterProfile="msk-serverless")
    assert planned.exit_code == ExitCode.REFUSED
    assert "Set `replication.factor` to 3, or remove it." in planned.stderr
    assert "RefusedByBrokers" not in planned.stderr


def test_kafka_streams_runs_with_the_topics_that_it_cannot_create(
    cluster: str,
    applications_of: Callable[[str], Applications],
    tmp_path: Path,
    unique: Callable[[str], str],
) -> None:
    """Unmodified Kafka Streams, without the library: it fails, and runs once the plan is applied."""
    application = TestedApplication(unique("streams-app"), cluster)
    for topic in (application.source, application.sink):
        create(cluster, topic, {})
    applications = applications_of(VERSION)
    configs = application.configs(default_client_supplier="")
    applications.start(application.id, application.topology, configs)
    assert "segment.bytes cannot be set on this cluster" in str(applications.failed(application.id).words)
    applications.close(application.id)
    file = tmp_path / "app.yaml"
    steps = [
        {"stream": {"topic": application.source}},
        {"groupBy": {"key": "value", "name": "by-value"}},
        {"count": {"materialized": application.kind}},
        {"toStream": {}},
        {"to": {"topic": application.sink}},
    ]
    declared = {"id": application.id, "clusterProfile": _SERVERLESS.name}
    file.write_text(yaml.safe_dump({"application": declared, "topology": steps}))
    apply(file, cluster)
    applications.start(application.id, application.topology, configs)
    applications.running(application.id)
    application.produce(20)
    application.await_true(lambda: sum(application.totals().values()) == 20, "totals are written")
    applications.close(application.id)


def apply(file: Path, servers: str) -> None:
    """Create the topics of the plan, as `pulumi up` does."""
    connection = Connection(bootstrap_servers=(servers,))
    documents = load_documents([file]).documents
    observed = observe_cluster(KafkaClusterReader(connection), documents, {}, with_ownership=False)
    planned = plan_documents(observed, PlanPolicy(), 0)
    assert planned.is_applicable, planned.problems
    admin = admin_client(connection)
    requested = request_new_topics(admin, [*planned.actions])
    for future in requested.values():
        future.result()
    await_topics(servers, {action.name for action in planned.actions})


def test_the_topic_of_ownership_records_is_created_as_the_problem_says(
    with_policy: KafkaDistribution, cluster: str
) -> None:
    connection = Connection(bootstrap_servers=(cluster,))
    with pytest.raises(ProblemsError) as refused:
        write_ownership(connection, OwnershipChange((_RECORD,)))
    (problem,) = refused.value.problems
    assert problem.code is ProblemCode.REFUSED_BY_BROKERS
    assert "compression.type cannot be set on this cluster" in str(problem.found)
    (command,) = re.findall(r"`(kafka-topics.sh [^`]*)`", problem.fix)
    words = command.split()
    assert words[:3] == ["kafka-topics.sh", "--bootstrap-server", "BROKER"]
    line = launch.broker_tool_command(with_policy, "topics", cluster, words[3:])
    subprocess.run(line, check=True, capture_output=True)
    write_ownership(connection, OwnershipChange((_RECORD,)))
    assert KafkaClusterReader(connection).read_ownership().records == (_RECORD,)
    (unsafe,) = configure_topic(connection, {"compression.type": RECORD_TOPIC_SETTINGS["compression.type"]})
    assert unsafe.topic == OWNERSHIP_TOPIC
    assert unsafe.code is ProblemCode.RECORDS_NOT_SAFE
    assert unsafe.fix.startswith("Have the policy of the brokers changed, then run `kafka-configs.sh")
    assert "and set `headwater:ownership: acls`" in unsafe.fix
    snapshot = KafkaClusterReader(connection).read(SnapshotRequest(with_ownership=True))
    for configures_records, codes in ((True, [ProblemCode.RECORDS_NOT_SAFE]), (False, [])):
        limits = PlanPolicy(stack=_RECORD.stack, configures_records=configures_records)
        planned = plan([], snapshot, {}, limits)
        assert [each.code for each in planned.problems] == codes
        assert bool(planned.ownership_settings) is configures_records


def test_an_agent_leads_when_its_topic_is_created_as_its_status_says(cluster: str) -> None:
    connection = Connection(bootstrap_servers=(cluster,))
    leadership = KafkaLeadership(connection, "headwater-agent-orders", "agent")
    try:
        assert until(lambda: leadership.poll() is None and bool(leadership.error), _SECONDS)
        assert leadership.error == (
            "POLICY_VIOLATION: compression.type cannot be set on this cluster; create headwater-agent-orders "
            "with one partition and cleanup.policy=compact"
        )
        create(cluster, "headwater-agent-orders", {"cleanup.policy": "compact"}, partitions=1)
        assert until(lambda: leadership.poll() is not None, _SECONDS)
        assert leadership.error == ""
    finally:
        leadership.close()
