"""Settings of the runtime from the config of an application."""

from collections.abc import Callable, Mapping

import pytest

from headwater.compiler.streams_config import streams_config_problems
from headwater.model.problems import Location, ProblemCode
from headwater.model.topology import Application
from headwater_spark.engine.program.settings import (
    acceptable_recovery_lag,
    engine_settings,
    max_task_idle_ms,
    purge_interval_ms,
    setting_problems,
)

EMIT_INTERVALS = (
    "__emit.interval.ms.kstreams.windowed.aggregation__",
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__",
)


def _application(config: dict[str, str]) -> Application:
    return Application(id="shop", config=config, at=Location(file="shop.yaml"))


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, 1_048_576),
        ({"max.request.size": " 5000000 "}, 5_000_000),
        ({"producer.max.request.size": "3", "max.request.size": "5"}, 3),
        ({"producer.max.request.size": "large"}, 1_048_576),
    ],
)
def test_the_largest_request_is_that_of_the_producer(config: Mapping[str, str], expected: int) -> None:
    assert engine_settings(config).largest_request == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [({}, 0), ({"max.task.idle.ms": "-1"}, -1), ({"max.task.idle.ms": " 1500 "}, 1500)],
)
def test_max_task_idle_is_that_of_kafka_streams(config: dict[str, str], expected: int) -> None:
    assert max_task_idle_ms(config) == expected
    assert not list(setting_problems(_application(config)))


@pytest.mark.parametrize("key", ["statestore.cache.max.bytes", "cache.max.bytes.buffering"])
@pytest.mark.parametrize("value", ["-1", "10MB", "", "1.5", "1e6"])
def test_other_cache_sizes_are_a_problem(key: str, value: str) -> None:
    (problem,) = streams_config_problems(_application({key: value}))
    assert problem.code is ProblemCode.INVALID_CONFIG
    assert problem.expected == "a whole number of at least 0"
    assert key in problem.summary
    assert engine_settings({key: value}).cache_max_bytes == 10 * 1024 * 1024


@pytest.mark.parametrize("key", EMIT_INTERVALS)
def test_negative_emit_intervals_are_a_problem(key: str) -> None:
    (problem,) = setting_problems(_application({key: "-1"}))
    assert (problem.expected, problem.found) == ("a whole number of at least 0", '"-1"')
    assert problem.why.startswith("It determines which updates are written")
    (problem,) = streams_config_problems(_application({key: " 5"}))
    assert "NumberFormatException" in problem.why  # Kafka Streams does not trim this one


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, 10 * 1024 * 1024),
        ({"statestore.cache.max.bytes": "0", "cache.max.bytes.buffering": "7"}, 0),
        ({"cache.max.bytes.buffering": "7"}, 7),
    ],
)
def test_cache_size_is_that_of_kafka_streams(config: dict[str, str], expected: int) -> None:
    assert engine_settings(config).cache_max_bytes == expected
    assert not list(setting_problems(_application(config)))


@pytest.mark.parametrize("value", ["-2", "1s", "", "1.5"])
def test_other_max_task_idle_is_a_problem(value: str) -> None:
    application = _application({"max.task.idle.ms": value})
    (problem,) = (*setting_problems(application), *streams_config_problems(application))
    assert problem.code is ProblemCode.INVALID_CONFIG
    assert "max.task.idle.ms" in problem.summary


@pytest.mark.parametrize(
    ("key", "read", "default"),
    [
        ("acceptable.recovery.lag", acceptable_recovery_lag, 10_000),
        ("repartition.purge.interval.ms", purge_interval_ms, 30_000),
    ],
)
def test_numbers_of_the_driver(key: str, read: Callable[[Mapping[str, str]], int], default: int) -> None:
    assert (read({}), read({key: " 7 "}), read({key: "0"})) == (default, 7, 0)
    for value in ("abc", "-1", "1.5", ""):
        (problem,) = streams_config_problems(_application({key: value}))
        assert problem.code is ProblemCode.INVALID_CONFIG
        assert key in problem.summary
        assert read({key: value}) == default
