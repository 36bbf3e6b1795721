"""Topic configs that no broker accepts are refused where a document is read."""

import pytest

from headwater.model.policies import EVERY_CLASS, TopicConfig
from headwater.spec import load_text
from headwater.spec.policies import load_policies_text
from headwater.spec.topic_configs import broker_text

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


@pytest.mark.parametrize(
    ("key", "written", "returned"),
    [
        ("min.cleanable.dirty.ratio", "1", "1.0"),
        ("min.cleanable.dirty.ratio", "0", "0.0"),
        ("min.cleanable.dirty.ratio", "0.50", "0.5"),
        ("min.cleanable.dirty.ratio", "5e-1d", "0.5"),
        ("min.cleanable.dirty.ratio", "0.0001", "1.0E-4"),
        ("min.cleanable.dirty.ratio", "0.000125", "1.25E-4"),
        ("min.cleanable.dirty.ratio", "NaN", "NaN"),
        ("retention.ms", "+604800000", "604800000"),
        ("segment.bytes", " 052428800 ", "52428800"),
        ("preallocate", "TRUE", "true"),
        ("cleanup.policy", "compact , delete", "compact,delete"),
        ("leader.replication.throttled.replicas", "", ""),
        ("compression.type", " zstd ", "zstd"),
        ("retention.ms", "soon", "soon"),
        ("vendor.tier", " COLD ", " COLD "),
    ],
)
def test_values_have_the_form_in_which_brokers_return_them(key: str, written: str, returned: str) -> None:
    assert broker_text(key, written) == returned


def test_all_topic_configs_of_a_document_have_the_form_of_the_brokers() -> None:
    """Otherwise each run would change them again, and the provider wait for a value that never comes."""
    text = (
        "application: {id: app, config: {topic.min.cleanable.dirty.ratio: 1, client.id: TRUE}}\n"
        "topics: {out: {config: {preallocate: 'TRUE'}}}\n"
        "topology:\n"
        "  - stream: orders\n"
        "  - groupByKey:\n"
        "  - count: {materialized: {store: counts, logging: {min.cleanable.dirty.ratio: 0.50}}}\n"
        "  - toStream:\n"
        "  - to: out\n"
    )
    loaded = load_text(text, "app.yaml")
    (document,) = loaded.documents
    assert loaded.problems == ()
    assert document.application.config == {"topic.min.cleanable.dirty.ratio": "1.0", "client.id": "true"}
    assert document.sinks[0].config == {"preallocate": "true"}
    assert "'0.5'" in repr(document.steps)


def test_required_values_of_policies_have_the_form_of_the_brokers() -> None:
    text = "policies: [{topicConfig: {require: {preallocate: 'TRUE', cleanup.policy: 'compact, delete'}}}]"
    (policy,) = load_policies_text(text, "policies.yaml").policies
    assert policy.rule == TopicConfig(
        {"preallocate": "true", "cleanup.policy": "compact,delete"}, (), EVERY_CLASS
    )
