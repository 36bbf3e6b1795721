"""Topic configs that no broker accepts are refused where a document is read."""

import pytest

from infra.spec import load_text

_DOCUMENT = "application: {id: app, config: {%s}, setup: {%s}}\ntopology:\n  - stream: orders\n%s"
_OBSERVED = (
    "application: {id: app}\n"
    "observed: {topics: {x-changelog: {kind: changelog, partitions: 1, config: {%s}}}, unknown: []}\n"
)


def found(config: str = "", setup: str = "", steps: str = "") -> list[str]:
    problems = load_text(_DOCUMENT % (config, setup, steps), "app.yaml").problems
    return [f"{problem.code} {problem.location.pointer if problem.location else ''}" for problem in problems]


@pytest.mark.parametrize(
    "config", ["cleanup.policy: bogus", "no.such.config: 1", "retention.ms: soon", "segment.bytes: 1000"]
)
def test_a_broker_would_refuse_the_internal_topics(config: str) -> None:
    key = config.partition(":")[0]
    assert found(f"topic.{config}") == [f"InvalidConfig /application/config/topic.{key}"]


def test_logging_of_stores_in_branches_is_checked() -> None:
    branch = "  - split: {branches: [{then: [{groupByKey: }, {count: {materialized: {logging: {a: 1}}}}]}]}\n"
    assert found(steps=branch) == [
        "InvalidConfig /topology/1/split/branches/0/then/1/count/materialized/logging/a"
    ]


@pytest.mark.parametrize("names", ["[vendor.tier]", '["vendor.*"]'])
def test_configs_of_a_vendor_are_left_to_the_brokers(names: str) -> None:
    assert found("topic.vendor.tier: cold", f"allowTopicConfigs: {names}") == []
    assert found("topic.vendors: cold", f"allowTopicConfigs: {names}") != []


def test_values_that_only_other_releases_accept_can_be_left_to_the_brokers() -> None:
    assert found("topic.segment.bytes: 1000", "allowTopicConfigs: [segment.bytes]") == []


def test_configs_that_were_found_on_a_cluster_are_not_checked() -> None:
    assert load_text(_OBSERVED % "vendor.tier: cold", "app.yaml").problems == ()
