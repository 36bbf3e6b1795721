"""Configs that change results and are not implemented are refused by name."""

import pytest

from headwater.model.problems import Location, ProblemCode, errors
from headwater.model.topology import Application
from headwater.model.versions import read_version
from headwater.spec import load_text
from headwater_spark.engine.program.config_support import (
    REFUSALS,
    SUPPORT,
    Support,
    main_consumer_config,
    refused_configs,
)
from headwater_spark.engine.program.settings import engine_settings, setting_problems
from tests.runtime.replay import runnable_programs

_KAFKA = "org.apache.kafka.streams."


def _application(config: dict[str, str], version: str = "4.3") -> Application:
    read = read_version(version)
    assert read is not None
    return Application(id="shop", config=config, kafka_streams=read, at=Location(file="shop.yaml"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dsl.store.format", "HEADERS"),
        ("dsl.store.format", "headers"),
        ("processor.wrapper.class", "com.shop.Wrapper"),
        ("default.timestamp.extractor", f"{_KAFKA}processor.WallclockTimestampExtractor"),
        ("default.timestamp.extractor", f"{_KAFKA}processor.LogAndSkipOnInvalidTimestamp"),
        ("default.client.supplier", "com.shop.Clients"),
        ("dsl.store.suppliers.class", "com.shop.Stores"),
        ("consumer.interceptor.classes", "com.shop.Interceptor"),
        ("main.consumer.interceptor.classes", "com.shop.Interceptor"),
        ("producer.interceptor.classes", "com.shop.Interceptor"),
        ("producer.partitioner.class", "org.apache.kafka.clients.producer.RoundRobinPartitioner"),
        ("producer.partitioner.ignore.keys", "true"),
        ("consumer.isolation.level", "read_committed"),
    ],
)
def test_other_results_are_refused_by_name(key: str, value: str) -> None:
    (problem,) = setting_problems(_application({key: value}))
    assert problem.code is ProblemCode.INVALID_CONFIG
    assert problem.summary == f"The runtime does not support the value of {key}."
    assert problem.found == f'"{value}"'
    assert key in problem.fix


@pytest.mark.parametrize(
    "config",
    [
        {"dsl.store.format": "default"},
        {"processor.wrapper.class": f"{_KAFKA}processor.internals.NoOpProcessorWrapper"},
        {"default.timestamp.extractor": f"{_KAFKA}processor.FailOnInvalidTimestamp"},
        {"dsl.store.suppliers.class": (f"{_KAFKA}state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers")},
        {"consumer.interceptor.classes": ""},
        {"producer.partitioner.ignore.keys": "false"},
        {"consumer.isolation.level": "read_uncommitted"},
        {"consumer.isolation.level": "read_committed", "processing.guarantee": "exactly_once_v2"},
        {"commit.interval.ms": "100", "num.standby.replicas": "1", "rocksdb.config.setter": "com.shop.Rocks"},
    ],
)
def test_the_same_results_are_not_refused(config: dict[str, str]) -> None:
    assert not list(setting_problems(_application(config)))


def test_a_config_that_the_version_does_not_have_is_ignored() -> None:
    for key, version in (("dsl.store.format", "4.2"), ("processor.wrapper.class", "3.9")):
        assert not list(refused_configs(_application({key: "other"}, version), exactly_once=False))


def test_each_refused_config_has_a_refusal() -> None:
    refused = {key for key, support in SUPPORT.items() if support is Support.REFUSED}
    assert refused == REFUSALS.keys()


def test_the_most_specific_prefix_of_the_main_consumer_wins() -> None:
    config = {"auto.offset.reset": "a", "consumer.auto.offset.reset": "b"}
    assert main_consumer_config({}, "auto.offset.reset", "earliest") == "earliest"
    assert main_consumer_config(config, "auto.offset.reset", "earliest") == "b"
    config["main.consumer.auto.offset.reset"] = "c"
    assert main_consumer_config(config, "auto.offset.reset", "earliest") == "c"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, False),
        ({"default.dsl.store": "in_memory"}, True),
        ({"default.dsl.store": "rocksDB"}, False),
        (
            {
                "default.dsl.store": "in_memory",
                "dsl.store.suppliers.class": "a.BuiltInDslStoreSuppliers$RocksDBDslStoreSuppliers",
            },
            False,
        ),
        ({"dsl.store.suppliers.class": "a.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers"}, True),
    ],
)
def test_type_of_stores(config: dict[str, str], expected: bool) -> None:  # noqa: FBT001 - a parameter
    assert engine_settings(config).stores_in_memory is expected


@pytest.mark.parametrize(
    ("version", "enabled", "expected"),
    [("4.3", "true", "continue"), ("4.3", "false", "fail"), ("4.3", None, "fail"), ("4.1", "true", "fail")],
)
def test_the_processing_handler_applies_to_global_tables_if_enabled(
    version: str, enabled: str | None, expected: str
) -> None:
    config = {"processing.exception.handler": "a.LogAndContinueProcessingExceptionHandler"}
    if enabled is not None:
        config["processing.exception.handler.global.enabled"] = enabled
    loaded = load_text(
        f'application: {{id: shop, kafkaStreams: "{version}", config: {config}}}\n'
        "topology: [{globalTable: {topic: rows, materialized: rows}}]",
        "shop.yaml",
    )
    assert not errors(loaded.problems), loaded.problems
    settings = engine_settings(loaded.documents[0].application.config)
    (program,) = runnable_programs(loaded.documents[0], (), settings)
    assert program.is_global
    assert settings.on_processing_error == "continue"
    assert program.settings.on_processing_error == expected
