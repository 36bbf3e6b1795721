"""Each finding of `headwater doctor`, with its reason and its remedy."""

import io
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.metadata import requires
from importlib.resources import files
from pathlib import Path

import attrs
import pytest
from jsonschema import Draft202012Validator
from packaging.requirements import Requirement
from rich.console import Console

from headwater.doctor import Finding, Section, Status, has_errors
from headwater.doctor.agents import AgentFacts, AgentGroup, agent_findings
from headwater.doctor.broker_defaults import DeclaredSettings
from headwater.doctor.cluster import ClusterFacts, Login, ReplicaFacts, cluster_findings
from headwater.doctor.machine import MachineFacts, Package, Program, machine_findings
from headwater.doctor.permissions import PermissionFacts, Purpose, Right, permission_findings
from headwater.doctor.stack import Lock, PolicyFacts, StackFacts, policy_findings, stack_findings
from headwater.model.broker_defaults import BROKER_DEFAULTS
from headwater.model.cluster import RegisteredBroker, RegisteredBrokers
from headwater.model.problems import Location, Problem, ProblemCode, Severity
from headwater.report.doctor import doctor_json, doctor_rich
from headwater_spark.spark_internals.supported import SUPPORTED_VERSIONS

_GOLDEN = Path(__file__).parent / "golden"
_WIDTH = 110

JAVA = Program(path="/usr/bin/java", version=(17, 0, 9), minimum=(17,))
PULUMI = Program(path="/usr/bin/pulumi", version=(3, 250, 0), minimum=(3, 250))
_package = partial(Package, is_fitting=True)
MACHINE = MachineFacts(
    python=(3, 12, 1),
    java=JAVA,
    maven=Program(path="/usr/bin/mvn", version=(3, 9, 6), minimum=(3, 6)),
    go=None,
    pulumi=PULUMI,
    pulumi_is_on_path=True,
    plugin="/home/al/.pulumi/plugins/resource-kafka-v3.13.3",
    plugin_is_visible=True,
    plugin_version="3.13.3",
    kafka=True,
    connector_found=True,
    connector="4.2.0",
    packages={
        "attrs": _package(">=24.2,<27", "26.1.0"),
        "pulumi": _package(">=3.260,<4", "3.272.0"),
    },
    spark_packages={
        "pyspark": _package("~=4.2.0", "4.2.1"),
        "pandas": _package(">=2.2.3,<3", "2.3.3"),
    },
)
LOGIN = Login(protocol="SASL_SSL", mechanism="PLAIN", username="al", verifies=True, is_local=False)
CLUSTER = ClusterFacts(
    login=LOGIN,
    servers=("kafka-1.example:9093", "kafka-2.example:9093"),
    cluster_id="5L6g3nShT-eMCtK--X86sw",
    brokers={1: "kafka-1.example:9093", 2: "kafka-2.example:9093", 3: "kafka-3.example:9093"},
    certificate_days=90,
    settings={
        "auto.create.topics.enable": "false",
        "group.coordinator.rebalance.protocols": "classic, streams",
        **{each.broker_key: each.harmless for each in BROKER_DEFAULTS.values()},
    },
    features={"streams.version": 1},
)
HARMFUL = {
    "auto.create.topics.enable": "false",
    "group.coordinator.rebalance.protocols": "classic, streams",
    "log.retention.bytes": "1073741824",
    "log.message.timestamp.before.max.ms": "86400000",
    "message.max.bytes": "500000",
    "unclean.leader.election.enable": "true",
}
UNREACHABLE = Problem(
    code=ProblemCode.CLUSTER_UNREACHABLE,
    summary="No Kafka broker can be reached.",
    found="Connection refused",
    why="Nothing is planned.",
    fix="Check the bootstrap servers.",
)
REFUSED = attrs.evolve(UNREACHABLE, code=ProblemCode.AUTHENTICATION_REFUSED)
STACK = StackFacts(
    name="production", backend="file:///srv/state?metadata=skip", is_in_files=True, applications=2
)
LOCK = Lock(
    file="lock.json", owner="al@build-1 (process 4711)", since="2026-11-22T17:58:44", is_running=False
)


def machine() -> Iterator[Iterable[Finding]]:
    yield machine_findings(MACHINE)
    old = attrs.evolve(JAVA, version=(11, 0, 2))
    yield machine_findings(
        attrs.evolve(
            MACHINE,
            java=old,
            maven=None,
            pulumi=attrs.evolve(PULUMI, version=(3, 100, 0)),
            plugin=None,
            kafka=False,
            connector_found=False,
            packages={
                "attrs": _package(">=24.2,<27", "25.0.0", is_fitting=False),
                "pulumi": _package(">=3.260,<4", None, is_fitting=False),
            },
            spark_packages={
                "pyspark": _package("~=4.2.0", "4.1.0", is_fitting=False),
                "pandas": _package(">=2.2.3,<3", None, is_fitting=False),
            },
        )
    )
    yield machine_findings(
        attrs.evolve(
            MACHINE,
            java=None,
            pulumi=None,
            kafka=False,
            connector_found=False,
            spark_packages={
                "pyspark": _package("~=4.2.0", None, is_fitting=False),
                "pandas": _package(">=2.2.3,<3", "2.1.4", is_fitting=False),
            },
        )
    )
    yield machine_findings(
        attrs.evolve(
            MACHINE,
            java=attrs.evolve(JAVA, version=None),
            pulumi_is_on_path=False,
            plugin_is_visible=False,
            spark_packages={
                "pyspark": _package("~=4.2.0", "4.2.1"),
                "pandas": _package(">=2.2.3,<3", "2.1.4", is_fitting=False),
            },
        )
    )


def cluster() -> Iterator[Iterable[Finding]]:
    yield cluster_findings(CLUSTER)
    short = ReplicaFacts(under_replicated=9, at_minimum=4, silent={3: 9})
    yield cluster_findings(attrs.evolve(CLUSTER, replicas=ReplicaFacts(under_replicated=1)))
    yield cluster_findings(attrs.evolve(CLUSTER, replicas=short))
    yield cluster_findings(attrs.evolve(CLUSTER, replicas=attrs.evolve(short, below_minimum=3)))
    yield cluster_findings(attrs.evolve(CLUSTER, replicas=attrs.evolve(short, leaderless=2)))
    brokers = {
        number: RegisteredBroker(id=number, rack=f"rack-{number}", is_fenced=number == 2)
        for number in (1, 2, 4)
    }
    placed = ReplicaFacts(under_replicated=2, in_one_rack=1, silent={2: 1, 3: 1})
    yield cluster_findings(
        attrs.evolve(
            CLUSTER,
            replicas=placed,
            registered=RegisteredBrokers(brokers, with_fenced=True),
            cordoned=frozenset({1}),
        )
    )
    yield cluster_findings(attrs.evolve(CLUSTER, cordoned=frozenset(CLUSTER.brokers)))
    many = {number: f"kafka-{number}.example:9093" for number in range(1, 61)}
    yield cluster_findings(
        attrs.evolve(CLUSTER, brokers=many, unchecked_addresses=10, cordoned=frozenset({60}))
    )
    yield cluster_findings(attrs.evolve(CLUSTER, problem=UNREACHABLE))
    yield cluster_findings(attrs.evolve(CLUSTER, problem=REFUSED))
    yield cluster_findings(
        attrs.evolve(
            CLUSTER,
            login=attrs.evolve(LOGIN, protocol="SASL_PLAINTEXT"),
            unreachable={"kafka-2.example:9093": "Connection refused", "kafka-3.example:9093": "timed out"},
            expected_cluster_id="MkU3OEVBNTcwNTJENDM2Qg",
            has_streams_applications=True,
            settings={
                "auto.create.topics.enable": "true",
                "group.coordinator.rebalance.protocols": "classic",
            },
            features={},
        )
    )
    yield cluster_findings(
        attrs.evolve(CLUSTER, login=attrs.evolve(LOGIN, verifies=False), settings=None, features=None)
    )
    yield cluster_findings(attrs.evolve(CLUSTER, certificate_days=1, features={}))
    harmful = {**HARMFUL, "log.cleaner.enable": "false"}
    yield cluster_findings(attrs.evolve(CLUSTER, settings=harmful))
    size, election = frozenset({"retention.bytes"}), frozenset({"unclean.leader.election.enable"})
    declared = {
        "orders": DeclaredSettings(refused=election, largest_request=2_000_000),
        "shipments": DeclaredSettings(keys=size),
    }
    yield cluster_findings(attrs.evolve(CLUSTER, settings=HARMFUL, topic_settings=declared))
    hidden = {**HARMFUL, "log.retention.bytes": ""}
    hidden.pop("message.max.bytes")
    yield cluster_findings(attrs.evolve(CLUSTER, settings=hidden))
    plain = Login(protocol="PLAINTEXT", mechanism=None, username=None, verifies=True, is_local=True)
    yield cluster_findings(attrs.evolve(CLUSTER, login=plain))
    yield cluster_findings(attrs.evolve(CLUSTER, login=attrs.evolve(plain, is_local=False)))


def permissions() -> Iterator[Iterable[Finding]]:
    checked = dict.fromkeys(Right, 2)
    denied = dict.fromkeys(Right, ("orders-a", "orders-b", "orders-c", "orders-d"))
    for purpose in Purpose:
        yield permission_findings(PermissionFacts(purpose=purpose, checked=checked))
        yield permission_findings(PermissionFacts(purpose=purpose, denied=denied))
    of_acls = {Right.ALTER_ACLS: ("cluster",)}
    yield permission_findings(
        PermissionFacts(purpose=Purpose.UP, checked=checked, denied=of_acls, has_acls=True)
    )
    unknown = {Right.DESCRIBE_GROUPS: "there has been no consumer group on this cluster yet"}
    yield permission_findings(
        PermissionFacts(
            purpose=Purpose.UP, denied={Right.ALTER: ("headwater-doctor",)}, unknown=unknown, is_example=True
        )
    )
    yield permission_findings(PermissionFacts(purpose=Purpose.UP, has_authorizer=False, denied=denied))


def stack() -> Iterator[Iterable[Finding]]:
    yield stack_findings(STACK)
    yield stack_findings(attrs.evolve(STACK, backend="s3://states", is_in_files=False))
    yield stack_findings(StackFacts(name="production", error="error: no stack named 'production' found"))
    attributes = "/srv/state/.pulumi/stacks/shop/production.json.attrs"
    yield stack_findings(
        attrs.evolve(
            STACK,
            backend="file:///srv/state",
            error="error: failed to load checkpoint: EOF",
            writes_attributes=True,
            empty_attributes=(attributes,),
            locks=(LOCK,),
        )
    )
    problem = Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary="headwater:documnts is not a setting of Headwater.",
        found="documnts",
        why="Headwater does not run with settings that it cannot read.",
        fix="Rename it to documents.",
        location=Location("Pulumi.production.yaml"),
    )
    yield stack_findings(
        attrs.evolve(
            STACK,
            backend="file:///srv/state",
            writes_attributes=True,
            locks=(attrs.evolve(LOCK, is_running=True),),
            pending=(
                "orders-a (creating)",
                "orders-b (creating)",
                "orders-c (creating)",
                "orders-d (creating)",
            ),
            problems=(problem,),
        )
    )
    yield stack_findings(
        attrs.evolve(STACK, locks=(attrs.evolve(LOCK, is_running=None),), pending=("a (creating)",))
    )
    yield policy_findings(PolicyFacts(policies=0))
    yield policy_findings(PolicyFacts(policies=3, problems=(problem,)))
    yield policy_findings(PolicyFacts(policies=1, reason="No Kafka broker can be reached."))
    violated = attrs.evolve(
        problem,
        code=ProblemCode.POLICY_VIOLATED,
        summary="Application id customer360 does not match the pattern.",
        found="customer360",
        severity=Severity.WARNING,
    )
    yield policy_findings(PolicyFacts(policies=3, problems=(problem, violated)))


def agents() -> Iterator[Iterable[Finding]]:
    yield agent_findings(AgentFacts(groups=()))
    yield agent_findings(AgentFacts(groups=(), autoscaled=("orders", "payments")))
    topic = "headwater-agent-production"
    two = ("agent-1 at 10.0.0.1", "agent-2 at 10.0.0.2")
    yield agent_findings(
        AgentFacts(
            groups=(
                AgentGroup(topic=topic, members=two, leader=two[1]),
                AgentGroup(topic=topic, members=two[:1], leader=two[0]),
                AgentGroup(topic=topic, members=two),
                AgentGroup(topic=topic),
                AgentGroup(topic=topic, error="GROUP_AUTHORIZATION_FAILED"),
            )
        )
    )


@pytest.mark.parametrize(
    "part", [machine, cluster, permissions, stack, agents], ids=lambda part: part.__name__
)
def test_texts(part: Callable[[], Iterator[Iterable[Finding]]], golden: Callable[[Path, str], None]) -> None:
    text = io.StringIO()
    console = Console(file=text, width=_WIDTH, color_system=None, highlight=False, soft_wrap=True)
    for findings in part():
        found = tuple(findings)
        assert all(finding.fix for finding in found if finding.status is not Status.OK)
        assert all(finding.why for finding in found if finding.status in (Status.ERROR, Status.WARNING))
        console.print(doctor_rich(found, _WIDTH))
        console.print("-" * 40)
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= _WIDTH
    golden(_GOLDEN / f"{part.__name__}.txt", "".join(f"{line.rstrip()}\n" for line in lines))


@pytest.mark.parametrize(
    "part", [machine, cluster, permissions, stack, agents], ids=lambda part: part.__name__
)
def test_json_fits_the_published_schema(part: Callable[[], Iterator[Iterable[Finding]]]) -> None:
    schema = json.loads(
        files("topology_schemas").joinpath("doctor.v1.schema.json").read_text(encoding="utf-8")
    )
    Draft202012Validator.check_schema(schema)
    properties = schema["$defs"]["check"]["properties"]
    assert properties["section"]["enum"] == [section.value for section in Section]
    assert set(properties["status"]["enum"]) == {status.value for status in Status}
    for findings in part():
        document = doctor_json(tuple(findings))
        Draft202012Validator(schema).validate(document)
        for check in document["checks"]:
            if check["status"] != "ok":
                broken = {**document, "checks": [{**check, "fix": None}]}
                assert not Draft202012Validator(schema).is_valid(broken)


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS)
def test_the_connector_fits_each_supported_version_of_spark(version: str) -> None:
    (required,) = (
        each.specifier for each in map(Requirement, requires("headwater") or ()) if each.name == "pyspark"
    )
    spark = Package(str(required), version, is_fitting=required.contains(version))
    facts = attrs.evolve(MACHINE, spark_packages={**MACHINE.spark_packages, "pyspark": spark})
    findings = list(machine_findings(facts))
    assert not has_errors(findings)
    assert [each.text for each in findings if each.check == "spark-connector"] == ["4.2.0 is downloaded"]


def test_json_has_one_entry_for_each_check() -> None:
    findings = [*machine_findings(MACHINE), *stack_findings(attrs.evolve(STACK, locks=(LOCK,)))]
    document = doctor_json(findings)
    assert document["version"] == 1
    assert document["ok"] is False
    assert has_errors(findings)
    assert [check["check"] for check in document["checks"]] == [finding.check for finding in findings]
    (lock,) = [check for check in document["checks"] if check["check"] == "lock"]
    assert lock.keys() == {"section", "check", "status", "text", "why", "fix"}
    assert (lock["section"], lock["status"]) == ("stack", "error")
    assert "pulumi cancel" in lock["fix"]
    assert doctor_json(list(machine_findings(MACHINE)))["ok"] is True


def test_partitions_on_several_brokers_that_are_not_registered_are_counted_at_least() -> None:
    facts = attrs.evolve(
        CLUSTER,
        replicas=ReplicaFacts(under_replicated=3, silent={7: 2, 8: 1}),
        registered=RegisteredBrokers({1: RegisteredBroker(id=1)}, with_fenced=True),
    )
    (finding,) = (each for each in cluster_findings(facts) if each.check == "replica-placement")
    assert finding.text == "At least 2 partitions have replicas on brokers 7, 8, which are not registered."
