"""Profiles of clusters, and settings that are declared as absent."""

from collections.abc import Mapping

import attrs
import pytest

from headwater.compiler import compile_documents
from headwater.compiler.cluster_profiles import with_profile
from headwater.doctor import Finding, Status
from headwater.doctor.cluster import ClusterFacts, Login, cluster_findings
from headwater.model.cluster_profiles import PROFILES, recognize_profile
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import ProblemCode, Severity
from headwater.spec import load_text
from headwater.spec.schema import document_schema
from tests.planner.simulated_cluster import SimulatedCluster

_STEPS = """\
topology:
  - stream: {topic: orders}
  - groupBy: {key: value.k, name: by-k}
  - count: {materialized: {store: counts, logging: {LOGGING}}}
  - toStream: {}
  - to: {topic: out}
topics: {out: {SINK}}
"""


def compiled(
    application: str = "", config: str = "", logging: str = "", sink: str = ""
) -> CompiledApplication:
    text = f"application: {{id: app, config: {{{config}}}{application}}}\n" + _STEPS.replace(
        "LOGGING", logging
    ).replace("SINK", sink)
    loaded = load_text(text, "app.yaml")
    assert not loaded.problems, loaded.problems
    (result,) = compile_documents(loaded.documents, {"orders": 4})
    return result


def configs(application: CompiledApplication) -> Mapping[str, Mapping[str, str]]:
    return {topic.node: topic.config for topic in application.internal_topics}


def texts(application: CompiledApplication) -> list[tuple[str, str | None, str]]:
    assert all(problem.code is ProblemCode.NOT_ON_CLUSTER for problem in application.problems)
    return [(problem.topic or "", problem.expected, problem.fix) for problem in application.problems]


def test_an_absent_setting_is_not_sent_for_any_topic() -> None:
    plain, absent = compiled(), compiled(config="topic.segment.bytes: null, topic.flush.ms: null")
    assert "52428800" in {config.get("segment.bytes") for config in configs(plain).values()}
    assert not any("segment.bytes" in config for config in configs(absent).values())
    assert not absent.problems


def test_a_store_may_have_a_setting_that_is_absent_otherwise() -> None:
    application = compiled(config="topic.segment.bytes: null", logging="segment.bytes: 2097152")
    assert [config.get("segment.bytes") for config in configs(application).values()] == [None, "2097152"]


@pytest.mark.parametrize("key", ["cleanup.policy", "retention.ms", "min.compaction.lag.ms"])
def test_a_setting_that_decides_about_records_cannot_be_absent(key: str) -> None:
    text = f"application: {{id: app, config: {{topic.{key}: null}}}}\ntopology: [stream: {{topic: a}}]\n"
    (problem,) = load_text(text, "app.yaml").problems
    assert problem.summary == f"Topic config `{key}` cannot be absent."


@pytest.mark.parametrize("key", ["application.server", "consumer.max.poll.records"])
def test_only_configs_of_internal_topics_can_be_absent(key: str) -> None:
    loaded = load_text(
        f"application: {{id: app, config: {{{key}: null}}}}\ntopology: [stream: {{topic: a}}]\n", "app.yaml"
    )
    assert [problem.code for problem in loaded.problems] == [ProblemCode.SCHEMA_VIOLATION]


@pytest.mark.parametrize("profile", ["msk-express", "msk-serverless"])
def test_profiles_of_msk_omit_what_kafka_streams_sends_and_they_refuse(profile: str) -> None:
    application = compiled(f", clusterProfile: {profile}")
    assert not application.problems
    assert not any("segment.bytes" in config for config in configs(application).values())
    assert {topic.replication_factor for topic in application.internal_topics} == {3}
    assert [sink.replication_factor for sink in application.sinks] == [3]


@pytest.mark.parametrize("profile", ["confluent-cloud", "redpanda", "apache-kafka"])
def test_other_profiles_keep_what_kafka_streams_sends(profile: str) -> None:
    application = compiled(f", clusterProfile: {profile}")
    assert not application.problems
    assert configs(application) == configs(compiled())


def test_topics_stay_classic_on_a_diskless_cluster() -> None:
    application = compiled(", clusterProfile: diskless")
    assert {config["diskless.enable"] for config in configs(application).values()} == {"false"}
    assert [sink.config for sink in application.sinks] == [{"diskless.enable": "false"}]
    refused = compiled(
        ", clusterProfile: diskless, setup: {allowTopicConfigs: [diskless.enable]}",
        sink="config: {diskless.enable: true}",
    )
    assert texts(refused) == [
        (
            "out",
            "`diskless.enable` false",
            "Set `diskless.enable` of out to false. Or correct `application.clusterProfile: diskless`.",
        )
    ]


@pytest.mark.parametrize(
    ("profile", "config", "logging", "sink", "expected"),
    [
        ("msk-express", "topic.segment.bytes: 2097152", "", "", "Remove `topic.segment.bytes`, or set it to"),
        ("msk-express", "", "segment.bytes: 2097152", "", "Remove `segment.bytes` from the `logging` of"),
        ("msk-express", "", "min.insync.replicas: 2", "", "Remove `min.insync.replicas` from the `logging`"),
        ("msk-serverless", "", "", "config: {segment.ms: 60000}", "Remove `segment.ms` from the `config` of"),
        ("msk-serverless", "", "max.message.bytes: 9000000", "", "Remove `max.message.bytes` from the"),
        (
            "msk-serverless",
            "topic.max.message.bytes: 9000000",
            "",
            "",
            "Set `topic.max.message.bytes` to 0 to",
        ),
        ("confluent-cloud", "topic.segment.bytes: 1048576", "", "", "`topic.segment.bytes` to 52428800 to"),
        ("confluent-cloud", "replication.factor: 2", "", "", "Set `replication.factor` to 3, or remove it."),
        ("confluent-cloud", "", "", "replicationFactor: 1", "Set `replicationFactor` to 3, or remove it."),
        ("redpanda", "topic.min.insync.replicas: 2", "", "", "Remove `topic.min.insync.replicas`, or set it"),
    ],
)
def test_a_declared_setting_that_the_cluster_refuses_is_one_error(
    profile: str, config: str, logging: str, sink: str, expected: str
) -> None:
    application = compiled(f", clusterProfile: {profile}", config, logging, sink)
    (problem,) = application.problems
    assert problem.code is ProblemCode.NOT_ON_CLUSTER
    assert problem.severity is Severity.ERROR
    assert expected in problem.fix
    if config:
        assert problem.location is not None
        assert problem.location.pointer.startswith("/application/config/")


@pytest.mark.parametrize(
    ("cluster_id", "hosts", "expected"),
    [
        ("lkc-1", ["b0-pkc-1.eu-central-1.aws.confluent.cloud"], "confluent-cloud"),
        ("5L6g3nShT", ["boot-x.c1.kafka-serverless.us-east-1.amazonaws.com"], "msk-serverless"),
        ("redpanda.5c2e", ["broker-0"], "redpanda"),
        ("abc", ["seed-1.fmc.prd.cloud.redpanda.com"], "redpanda"),
        ("5L6g3nShT", ["b-1.shop.abc.c3.kafka.us-east-1.amazonaws.com"], None),
        ("5L6g3nShT", ["kafka-1.example"], None),
    ],
)
def test_some_clusters_are_recognized(cluster_id: str, hosts: list[str], expected: str | None) -> None:
    found = recognize_profile(cluster_id, hosts)
    assert (found.name if found else None) == expected


def test_a_recognized_profile_holds_for_documents_that_declare_none() -> None:
    loaded = load_text(
        "application: {id: app}\n" + _STEPS.replace("LOGGING", "").replace("SINK", ""), "a.yaml"
    )
    assert with_profile(loaded.documents, None) is loaded.documents
    recognized = with_profile(loaded.documents, PROFILES["msk-serverless"])
    (application,) = compile_documents(recognized, {"orders": 4})
    assert not any("segment.bytes" in config for config in configs(application).values())
    plan = SimulatedCluster().plan(application)
    assert "cluster profile msk-serverless (recognized from the cluster)" in plan.applications[0].notes
    declared = [
        attrs.evolve(each, application=attrs.evolve(each.application, cluster_profile=PROFILES["redpanda"]))
        for each in loaded.documents
    ]
    assert with_profile(declared, PROFILES["msk-serverless"]) is declared


def test_a_document_may_contradict_the_recognized_profile() -> None:
    steps = _STEPS.replace("LOGGING", "").replace("SINK", "config: {segment.ms: 60000}")
    first, second = (
        with_profile(load_text(f"{head}\n{steps}", "a.yaml").documents, PROFILES["msk-serverless"])
        for head in ("application: {id: app}", "application: {id: app, clusterProfile: apache-kafka}")
    )
    (refused,), (accepted,) = (compile_documents(each, {"orders": 4}) for each in (first, second))
    assert "declare `application.clusterProfile: apache-kafka`" in refused.problems[0].fix
    assert not accepted.problems


def test_the_schema_has_all_profiles() -> None:
    properties = document_schema()["$defs"]["application"]["properties"]
    assert properties["clusterProfile"]["enum"] == list(PROFILES)


_MSK = "b-1.shop.abc.c3.kafka.us-east-1.amazonaws.com:9098"
_LOGIN = Login(protocol="SASL_SSL", mechanism="PLAIN", username="al", verifies=True, is_local=False)


@pytest.mark.parametrize(
    ("cluster_id", "host", "declared", "expected"),
    [
        ("redpanda.1", "broker-0:9092", {"app": None}, Status.WARNING),
        ("redpanda.1", "broker-0:9092", {"app": "msk-express"}, Status.WARNING),
        ("redpanda.1", "broker-0:9092", {"app": "redpanda"}, Status.OK),
        ("redpanda.1", "broker-0:9092", {"app": "apache-kafka"}, Status.OK),
        ("5L6g3nShT", _MSK, {"app": None}, Status.WARNING),
        ("5L6g3nShT", _MSK, {"app": "msk-express"}, None),
        ("5L6g3nShT", "kafka-1.example:9092", {"app": None}, None),
    ],
)
def test_the_doctor_compares_the_declared_profile(
    cluster_id: str, host: str, declared: Mapping[str, str | None], expected: Status | None
) -> None:
    facts = ClusterFacts(
        login=_LOGIN, servers=(host,), cluster_id=cluster_id, brokers={1: host}, profiles=declared
    )
    found: list[Finding] = [each for each in cluster_findings(facts) if each.check == "cluster-profile"]
    assert [each.status for each in found] == ([] if expected is None else [expected])
    assert all(each.fix.startswith(("Declare `clusterProfile", "If they are")) for each in found if each.fix)
