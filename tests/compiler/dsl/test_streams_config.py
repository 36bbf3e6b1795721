"""The config keys that compiler and planner read."""

import pytest

from headwater.compiler.configs.table import read_config
from headwater.compiler.streams_config import (
    OPTIMIZATIONS,
    Guarantee,
    SetupMode,
    StreamsConfig,
    streams_config_problems,
)
from headwater.model.problems import Location, Problem, ProblemCode, shorten_text
from headwater.model.topology import Application, Protocol
from headwater.model.versions import SUPPORTED, KafkaStreamsVersion

AT = Location("case.yaml", 3, 5)


def config(**values: str) -> StreamsConfig:
    return StreamsConfig.from_application(Application("app", AT, config=values))


def problems(**values: str) -> tuple[Problem, ...]:
    return streams_config_problems(Application("app", AT, config=values))


def test_defaults_are_those_of_kafka_streams_and_the_kips() -> None:
    assert config() == StreamsConfig()
    assert config().replication_factor == -1
    assert config().additional_retention_ms == 86_400_000
    assert config().setup_mode is SetupMode.AUTOMATIC
    assert config().optimizations == frozenset()


@pytest.mark.parametrize("version", SUPPORTED, ids=str)
def test_defaults_are_those_of_the_table(version: KafkaStreamsVersion) -> None:
    read = StreamsConfig.from_application(Application("app", AT, kafka_streams=version))
    for key, value in (
        ("replication.factor", read.replication_factor),
        ("windowstore.changelog.additional.retention.ms", read.additional_retention_ms),
        ("partition.autoscaling.enabled", read.autoscaling),
        ("partition.autoscaling.timeout.ms", read.autoscaling_timeout_ms),
        ("internal.topics.setup", read.setup_mode),
        ("metadata.max.age.ms", read.metadata_max_age_ms),
        ("max.poll.interval.ms", read.max_poll_interval_ms),
        ("max.task.idle.ms", read.max_task_idle_ms),
        ("num.stream.threads", read.stream_threads),
        ("processing.guarantee", read.guarantee),
        ("upgrade.from", read.upgrade_from),
    ):
        assert read_config({}, key, version) == value


@pytest.mark.parametrize(("version", "is_known"), [((2, 8, 1), False), ((5, 0, 0), True)])
def test_unknown_releases_have_the_configs_of_the_nearest(
    version: tuple[int, int, int], *, is_known: bool
) -> None:
    application = Application(
        "app",
        AT,
        config={"dsl.store.format": "x", "num.standby.replicas": "x", "producer.acks": "x"},
        kafka_streams=KafkaStreamsVersion(*version),
    )
    found = [problem.summary.split("`")[1] for problem in streams_config_problems(application)]
    assert found == [*(["dsl.store.format"] if is_known else []), "num.standby.replicas", "producer.acks"]


def test_every_key_is_read() -> None:
    values = {
        "topology.optimization": "all",
        "replication.factor": "3",
        "topic.segment.bytes": "1048576",
        "topic.cleanup.policy": "compact",
        "windowstore.changelog.additional.retention.ms": "0",
        "ensure.explicit.internal.resource.naming": "true",
        "internal.topics.setup": "manual",
        "partition.autoscaling.enabled": "TRUE",
        "partition.autoscaling.timeout.ms": "1000",
        "static.partitioner.class": "shop:Partitioner",
        "metadata.max.age.ms": "500",
        "num.stream.threads": "4",
        "processing.guarantee": "exactly_once_v2",
        "__internal.override.topic.prefix__": "shared",
        "__enable.process.processValue.fix__": "true",
        "upgrade.from": "3.9",
    }
    assert config(**values) == StreamsConfig(
        optimizations=OPTIMIZATIONS,
        replication_factor=3,
        topic_overrides={"segment.bytes": "1048576", "cleanup.policy": "compact"},
        additional_retention_ms=0,
        explicit_naming=True,
        setup_mode=SetupMode.MANUAL,
        autoscaling=True,
        autoscaling_timeout_ms=1000,
        static_partitioner="shop:Partitioner",
        metadata_max_age_ms=500,
        stream_threads=4,
        guarantee=Guarantee.EXACTLY_ONCE_V2,
        topic_prefix="shared",
        process_changes_key=True,
        upgrade_from="3.9",
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("none", set()),
        ("all", OPTIMIZATIONS),
        ("merge.repartition.topics", {"merge.repartition.topics"}),
        (
            "reuse.ktable.source.topics , single.store.self.join",
            {"reuse.ktable.source.topics", "single.store.self.join"},
        ),
        ("all,", OPTIMIZATIONS),
        ("all , ", OPTIMIZATIONS),
        ("none,,", set()),
        ("merge.repartition.topics,", {"merge.repartition.topics"}),
        (",", set()),
    ],
)
def test_optimizations(value: str, words: set[str]) -> None:
    assert config(**{"topology.optimization": value}).optimizations == words
    assert not problems(**{"topology.optimization": value})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("topology.optimization", "all,none"),
        ("topology.optimization", ",all"),
        ("topology.optimization", "all,\N{NO-BREAK SPACE}"),
        ("topology.optimization", "everything"),
        ("topology.optimization", " all"),
        ("topology.optimization", ""),
        ("replication.factor", "0"),
        ("replication.factor", "three"),
        ("windowstore.changelog.additional.retention.ms", "1d"),
        ("ensure.explicit.internal.resource.naming", "yes"),
        ("internal.topics.setup", "auto"),
        ("partition.autoscaling.enabled", "1"),
        ("partition.autoscaling.timeout.ms", "-1"),
        ("static.partitioner.class", " "),
        ("metadata.max.age.ms", "soon"),
        ("num.stream.threads", "2147483648"),
        ("processing.guarantee", "exactly_once"),
        ("upgrade.from", "0.9"),
    ],
)
def test_an_invalid_value_is_a_problem_and_the_default_applies(key: str, value: str) -> None:
    (problem,) = problems(**{key: value})
    assert problem.code is ProblemCode.INVALID_CONFIG
    assert key in problem.summary
    assert problem.found == (f"`{shorten_text(value)}`" if value else "empty text")
    assert problem.expected is not None
    assert problem.expected in problem.fix or problem.fix.startswith("Did you mean")
    assert problem.why
    assert problem.location == AT
    assert config(**{key: value}) == StreamsConfig()


def test_the_protocol_of_the_config_must_be_the_declared_one() -> None:
    def problems_without_lints(value: str) -> list[str | None]:
        application = Application("app", AT, Protocol.STREAMS, {"group.protocol": value})
        return [problem.found for problem in streams_config_problems(application)]

    assert problems_without_lints("Streams") == []
    assert problems_without_lints("classic") == ["classic"]
    assert problems_without_lints("consumer") == ["`consumer`", "classic"]


def test_a_config_is_read_once_for_each_version_and_set_of_values() -> None:
    values = {"processing.guarantee": "exactly_once_beta", "topic.b": "1", "topic.a": "2"}
    first, same = (
        StreamsConfig.from_application(Application(name, AT, config=dict(values))) for name in ("one", "two")
    )
    assert first is same
    assert list(first.topic_overrides) == ["b", "a"]
    others = (
        Application("app", AT, config=values, kafka_streams=KafkaStreamsVersion(3, 9, 2)),
        Application("app", AT, config={**values, "topic.a": "3"}),
        Application("app", AT, config=dict(reversed(values.items()))),
    )
    assert [StreamsConfig.from_application(each) == first for each in others] == [False, False, True]
    assert list(StreamsConfig.from_application(others[2]).topic_overrides) == ["a", "b"]
