"""Which sinks choose partitions themselves, and whether an application is statically partitioned."""

from collections.abc import Mapping

import pytest

from headwater.compiler import compile_document
from headwater.compiler.streams_config import LIBRARY_PARTITIONER, LIBRARY_SUPPLIER, StreamsConfig
from headwater.describe import read_description
from headwater.model.compiled import PartitionedBy
from headwater.model.problems import Location, ProblemCode
from headwater.model.topology import DescribedTopology, TopologyDocument
from tests.compiler.applications import codes, compiled, document
from tests.describe.texts import SMALL

_JVM = {
    "default.client.supplier": LIBRARY_SUPPLIER,
    "producer.partitioner.class": LIBRARY_PARTITIONER,
    "producer.static.partitioner.class": "initial-hash",
    "producer.static.partitioner.initial.partitions": "3",
}
_PLAIN = "[{stream: {topic: a}}, {repartition: {name: r}}, {groupByKey: {}}, {count: {materialized: c}}]"
_INCOMPLETE = ProblemCode.STATIC_PARTITIONING_INCOMPLETE


def _text(config: Mapping[str, str], topology: str = _PLAIN) -> str:
    return f"application: {{id: app, config: {dict(config)}}}\ntopology: {topology}"


def _config(config: Mapping[str, str]) -> StreamsConfig:
    return StreamsConfig.from_application(document(_text(config)).application)


@pytest.mark.parametrize(
    ("changed", "is_static"),
    [
        ({}, True),
        ({"producer.static.partitioner.class": "key-prefix"}, True),
        ({"producer.static.partitioner.class": "linear-hash"}, False),
        ({"producer.static.partitioner.class": "linear-hash", "static.partitioner.class": "range"}, False),
        ({"producer.partitioner.class": "com.acme.Own"}, False),
        ({"producer.partitioner.class": "com.acme.Own", "static.partitioner.class": "range"}, True),
        ({"producer.partitioner.class": "com.acme.Own", "partitioner.class": LIBRARY_PARTITIONER}, False),
    ],
)
def test_the_configs_of_the_producer_decide(changed: Mapping[str, str], *, is_static: bool) -> None:
    assert _config({**_JVM, **changed}).is_statically_partitioned is is_static


def test_a_config_that_the_jvm_does_not_read_makes_no_application_static() -> None:
    static = {"static.partitioner.class": "initial-hash"}
    assert _config(static).is_statically_partitioned
    assert not _config({**static, "default.client.supplier": LIBRARY_SUPPLIER}).is_statically_partitioned


def test_configs_without_prefix_are_for_the_producer_too() -> None:
    without = {key.removeprefix("producer."): value for key, value in _JVM.items()}
    assert _config(without).library_function == "initial-hash"
    assert _config({**without, "producer.static.partitioner.class": "range"}).library_function == "range"


def test_sinks_without_a_partitioner_are_covered() -> None:
    application = compiled(_text(_JVM), {"a": 3})
    assert application.partitioned_sinks == ()
    assert _INCOMPLETE not in codes(application.problems)


def test_classes_windowed_keys_and_joins_by_foreign_keys() -> None:
    topology = """
  - stream: {topic: a, as: a}
  - repartition: {from: a, name: own, partitioner: "shop:ByKey", as: own}
  - groupByKey: {from: own}
  - windowedBy: {tumbling: {size: 1h}}
  - count: {materialized: c}
  - toStream: {as: counts}
  - to: {from: counts, topic: o}
  - repartition: {from: counts, name: windowed}
  - to: {topic: p, partitioner: default}
  - table: {topic: t, as: t, materialized: ts}
  - table: {topic: u, as: u, materialized: us}
  - join: {from: t, with: u, foreignKey: x, name: fk, materialized: j}
"""
    application = compiled(_text(_JVM, topology), dict.fromkeys("atu", 3))
    sinks = application.partitioned_sinks
    assert sinks is not None
    assert {(sink.topic, sink.by, sink.is_internal) for sink in sinks} == {
        ("app-own-repartition", PartitionedBy.CLASS, True),
        ("o", PartitionedBy.WINDOWED_KEY, False),
    }
    assert codes(application.problems).count(_INCOMPLETE) == 2


def test_only_applications_with_the_library_are_warned() -> None:
    own = _PLAIN.replace("name: r", "name: r, partitioner: 'shop:ByKey'")
    static = {"static.partitioner.class": "initial-hash", "static.partitioner.initial.partitions": "3"}
    assert _INCOMPLETE not in codes(compiled(_text(static, own), {"a": 3}).problems)
    assert _INCOMPLETE in codes(compiled(_text({**static, **_JVM}, own), {"a": 3}).problems)
    supplier = {**static, "default.client.supplier": LIBRARY_SUPPLIER}
    assert _INCOMPLETE in codes(compiled(_text(supplier), {"a": 3}).problems)
    others = {**supplier, "producer.partitioner.class": "com.acme.Own"}
    assert _INCOMPLETE not in codes(compiled(_text(others), {"a": 3}).problems)


def test_a_document_without_the_code_is_incomplete() -> None:
    topics = "{topics: {c-changelog: {kind: changelog, partitions: 3}}, sources: {a: 3}, unknown: []}"
    observed = compiled(f"application: {{id: app, config: {_JVM}}}\nobserved: {topics}", {"a": 3})
    assert observed.partitioned_sinks is None
    assert _INCOMPLETE in codes(observed.problems)
    nodes, _ = read_description(SMALL, "app.txt")
    described = TopologyDocument(
        document(_text(_JVM)).application, described=DescribedTopology(nodes, Location("app.yaml"))
    )
    assert _INCOMPLETE in codes(compile_document(described, {"orders": 3}).problems)
