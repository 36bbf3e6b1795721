"""Values of Kafka Streams' configs in documents: what is refused, where, and for which versions.

The rules themselves are compared with Kafka in `tests/oracle/test_configs.py`.
"""

import json
from collections.abc import Mapping

import pytest

from headwater.compiler import compile_document
from headwater.compiler.configs.table import HEADWATER_CONFIGS, find_any_config
from headwater.model.problems import Problem, ProblemCode, errors
from headwater.model.versions import DEFAULT_VERSION, SUPPORTED_RELEASES, read_version
from headwater.spec import load_text, parse_document
from headwater.spec.schema import document_schema


def problems_of(config: Mapping[str, object], version: str | None = None) -> tuple[Problem, ...]:
    """Return the errors of a document and of its compilation."""
    application = {"id": "shop", "config": dict(config), **({"kafkaStreams": version} if version else {})}
    loaded = parse_document({"application": application, "topology": [{"stream": "orders"}]})
    compiled = [compile_document(document, {"orders": 1}).problems for document in loaded.documents]
    return errors((*loaded.problems, *(problem for problems in compiled for problem in problems)))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num.standby.replicas", "abc"),
        ("max.warmup.replicas", 0),
        ("default.dsl.store", "x"),
        ("commit.interval.ms", "abc"),
        ("max.poll.interval.ms", "300_000"),
        ("max.task.idle.ms", "1.5"),
        ("num.stream.threads", 5.5),
        ("enable.metrics.push", 1),
        ("consumer.max.poll.records", 0),
        ("admin.retries", -1),
        ("restore.consumer.fetch.min.bytes", "x"),
        ("default.key.serde", " "),
        ("application.server", "localhost"),
        ("bootstrap.servers", "localhost"),
    ],
)
def test_what_kafka_streams_refuses_is_refused_in_all_versions(key: str, value: object) -> None:
    for version in (None, *SUPPORTED_RELEASES):
        (problem,) = problems_of({key: value}, version)
        assert problem.code is ProblemCode.INVALID_CONFIG
        assert key in problem.summary
        assert problem.location is not None
        assert problem.location.pointer == f"/application/config/{key}"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num.stream.threads", " 5 "),
        ("num.stream.threads", "+5"),
        ("num.standby.replicas", "\N{ARABIC-INDIC DIGIT THREE}"),
        ("ensure.explicit.internal.resource.naming", " FALSE "),
        ("partition.autoscaling.enabled", "TRUE"),
        ("internal.topics.setup", " manual "),
        ("security.protocol", "sasl_ssl"),
        ("sasl.login.refresh.window.factor", "8e-1"),
        ("processing.guarantee", " exactly_once_v2"),
        ("default.key.serde", "com.example.MySerde"),
        ("consumer.interceptor.classes", "com.example.A, com.example.B"),
        ("enable.auto.commit", "banana"),  # Kafka Streams ignores it
        ("key.deserializer", "."),  # Kafka Streams sets its own
    ],
)
def test_what_kafka_streams_accepts_is_accepted(key: str, value: object) -> None:
    assert problems_of({key: value}) == ()


def test_an_overridden_value_reaches_no_client() -> None:
    assert problems_of({"acks": "many", "producer.acks": "all"}) == ()
    (problem,) = problems_of({"acks": "all", "producer.acks": "many"})
    assert problem.fix == "Set `producer.acks` to `all`, `-1`, `0` or `1`, or remove it."


def test_all_problems_are_reported_together_with_their_lines() -> None:
    text = """
application:
  id: shop
  config:
    num.standby.replicas: abc
    num.stream.thread: 5
    max.warmup.replicas: 0
    processing.guarantee: exactly_once_v2
    producer.acks: "1"
topology: [{stream: orders}]
"""
    found = [
        (problem.location.line, problem.code.value)
        for problem in load_text(text, "shop.yaml").problems
        if problem.location is not None
    ]
    assert found == [
        (5, "InvalidConfig"),
        (6, "ConfigHasNoEffect"),
        (7, "InvalidConfig"),
        (9, "InvalidConfig"),
    ]


def test_a_version_of_the_setup_record_decides_without_one_in_the_document() -> None:
    config = {"upgrade.from": "2.3"}  # not since 4.2
    text = "application: {id: shop, config: {upgrade.from: '2.3'}}\ntopology: [{stream: orders}]"
    loaded = load_text(text, "shop.yaml")

    assert loaded.problems == ()
    # the compiler uses the newest version if there is no record
    (problem,) = compile_document(loaded.documents[0], {"orders": 1}).problems
    assert problem.location is not None
    assert (problem.location.line, problem.location.column) == (1, 48)
    assert problems_of(config, "4.1") == ()
    assert [problem.code for problem in problems_of(config, "4.2")] == [ProblemCode.INVALID_CONFIG]


def test_values_of_config_providers_are_not_known() -> None:
    variable = {"commit.interval.ms": "${file:/etc/streams:interval}"}
    provider = {"config.providers": "file", "config.providers.file.class": "com.example.FileConfigProvider"}

    assert problems_of({**variable, **provider}) == ()
    assert len(problems_of(variable)) == 1
    assert len(problems_of({**variable, "config.providers": "file"})) == 1


def test_configs_of_other_versions_are_warnings() -> None:
    application = {
        "id": "shop",
        "kafkaStreams": "4.0",
        "config": {"auto.include.jmx.reporter": True, "consumer.share.acquire.mode": "record_limit"},
    }
    loaded = parse_document({"application": application, "topology": [{"stream": "orders"}]})

    assert [(problem.code, problem.summary) for problem in loaded.problems] == [
        (
            ProblemCode.NOT_IN_VERSION,
            "`auto.include.jmx.reporter` exists only up to Kafka Streams 3.9.",
        ),
        (ProblemCode.NOT_IN_VERSION, "`consumer.share.acquire.mode` exists since Kafka Streams 4.2.0."),
    ]


def test_the_schema_describes_configs_and_leaves_values_to_the_table() -> None:
    described = document_schema()["$defs"]["config"]["properties"]

    assert {key for key in HEADWATER_CONFIGS if not key.startswith("producer.")} <= described.keys()
    for key, schema in described.items():
        config = find_any_config(key, DEFAULT_VERSION)
        assert config is not None
        assert schema["type"] == ["string", "number", "boolean"]
        default = schema.get("default")
        if default is not None:
            assert (default if isinstance(default, str) else json.dumps(default)) == config.default
        for example in schema["examples"]:
            assert problems_of({key: example}) == ()


@pytest.mark.parametrize("release", SUPPORTED_RELEASES)
def test_the_defaults_of_kafka_are_allowed(release: str) -> None:
    version = read_version(release)
    assert version is not None
    for key in ("num.stream.threads", "consumer.auto.offset.reset", "producer.linger.ms", "admin.retries"):
        config = find_any_config(key, version)
        assert config is not None
        assert config.default is not None
        assert problems_of({key: config.default}, release) == ()


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        ("schema.registry.url", None),
        ("schema.registry.ssl.truststore.location", None),
        ("schema.registry.bearer.auth.token", None),
        ("schema.registry.proxy.host", None),
        ("apicurio.registry.url", None),
        ("schema.registry.ulr", "Did you mean `schema.registry.url`?"),
        ("my.own.class.setting", "Keep it if such a class uses it. Otherwise remove it."),
    ],
)
def test_the_address_of_a_schema_registry_is_a_known_config(key: str, fix: str | None) -> None:
    loaded = parse_document(
        {
            "application": {"id": "shop", "config": {key: "http://registry:8081"}},
            "topology": [{"stream": "orders"}],
        }
    )
    assert [problem.fix for problem in loaded.problems] == ([] if fix is None else [fix])
