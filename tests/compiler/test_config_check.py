"""Which configs are refused: single values, once each, before combinations."""

import pytest

from headwater.compiler.configs.check import config_problems, find_refusals
from headwater.compiler.configs.values import name_exception
from headwater.model.problems import Location, ProblemCode
from headwater.model.topology import Application
from headwater.model.versions import DEFAULT_VERSION

AT = Location("app.yaml", 3, 5)


def refused(config: dict[str, str]) -> list[tuple[str, str]]:
    """Return key and fix of each refusal."""
    return [(each.key, each.fix) for each in find_refusals(config, DEFAULT_VERSION)]


@pytest.mark.parametrize(
    ("key", "text", "fix"),
    [
        ("num.stream.threads", "1_000", "Did you mean `1000`?"),
        ("num.stream.threads", "4.0", "Did you mean `4`?"),
        ("processing.guarantee", "Exactly_Once_V2", "Did you mean `exactly_once_v2`?"),
        ("producer.acks", "most", "Set `producer.acks` to "),
    ],
)
def test_a_refused_value_is_reported_with_the_probable_one(key: str, text: str, fix: str) -> None:
    ((found, advice),) = refused({key: text})
    assert found == key
    assert advice.startswith(fix)


def test_a_config_of_several_clients_is_refused_once() -> None:
    assert [key for key, _ in refused({"request.timeout.ms": "soon"})] == ["request.timeout.ms"]


def test_combinations_with_a_refused_value_are_not_reported() -> None:
    pair = {"consumer.session.timeout.ms": "1000", "consumer.heartbeat.interval.ms": "2000"}
    (combination,) = find_refusals(pair, DEFAULT_VERSION)
    broken = {**pair, combination.key: "x"}
    assert [key for key, _ in refused(broken)] == [combination.key]


def test_variables_of_a_declared_config_provider_are_not_known() -> None:
    value = {"num.stream.threads": "${file:threads}"}
    provider = {"config.providers": "file", "config.providers.file.class": "a.Provider"}
    assert [key for key, _ in refused(value)] == ["num.stream.threads"]
    assert refused({**value, **provider}) == []
    assert [key for key, _ in refused({**value, "config.providers": "file"})] == ["num.stream.threads"]


def test_unknown_keys_are_no_business_of_this_check() -> None:
    assert refused({"no.such.config": "x"}) == []


def test_a_problem_has_the_application_and_its_location() -> None:
    (problem,) = config_problems(Application("app", AT, config={"num.stream.threads": "x"}))
    assert (problem.code, problem.application, problem.location) == (ProblemCode.INVALID_CONFIG, "app", AT)


@pytest.mark.parametrize(
    ("exception", "article"), [("ConfigException", "a"), ("IllegalArgumentException", "an")]
)
def test_the_consequence_names_the_exception(exception: str, article: str) -> None:
    assert name_exception(exception) == (
        f"Kafka Streams throws {article} {exception}: the application does not start."
    )
