"""A fixed number of processors decides the counts of changelogs, and of no other topic (KIP-287)."""

from collections.abc import Mapping

import attrs
import pytest

from headwater.compiler import compile_document
from headwater.describe import read_description
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Location, ProblemCode, errors
from headwater.model.topology import Application, DescribedTopology, TopologyDocument
from tests.compiler.applications import codes, compiled, counts, document
from tests.describe.texts import SMALL

COUNTS = """
application: {{id: app, processors: {processors}, config: {{processing.guarantee: exactly_once_v2}}}}
topics: {{totals: {{partitions: follow}}}}
topology:
  - stream: {{topic: orders}}
  - groupBy: {{key: value.customer, name: by-customer}}
  - count: {{materialized: counts}}
  - toStream: {{}}
  - to: {{topic: totals}}
"""
FOREIGN_KEY = """
application: {id: app, processors: 2, config: {processing.guarantee: exactly_once_v2}}
topology:
  - table: {topic: orders, as: orders, materialized: orders}
  - table: {topic: customers, as: customers, materialized: customers}
  - join: {from: orders, with: customers, foreignKey: value.customer, name: joined, materialized: joined}
"""


def processors(application: CompiledApplication) -> Mapping[int, int | None]:
    return {part.id: part.processors for part in application.subtopologies}


def test_changelogs_have_a_partition_per_processor_and_other_topics_follow() -> None:
    application = compiled(COUNTS.format(processors=2), {"orders": 8})
    assert counts(application) == {"by-customer-repartition": 8, "counts-changelog": 2}
    assert [(sink.topic, sink.partitions) for sink in application.sinks] == [("totals", 8)]
    assert processors(application) == {0: None, 1: 2}
    assert [part.tasks for part in application.subtopologies] == [8, 8]
    assert application.subtopologies[1].source_partitions == {"app-by-customer-repartition": 8}
    assert not errors(application.problems)


def test_follow_is_the_default_and_changes_nothing() -> None:
    followed = document(COUNTS.format(processors="follow"))
    assert followed.application.processors is None
    default = document(COUNTS.format(processors="follow").replace("processors: follow, ", ""))
    assert default.application.processors is None
    assert counts(compile_document(followed, {"orders": 8})) == {
        "by-customer-repartition": 8,
        "counts-changelog": 8,
    }


def test_as_many_processors_as_partitions_are_the_layout_of_kafka_streams() -> None:
    declared = compiled(COUNTS.format(processors=4), {"orders": 4})
    assert (
        declared.internal_topics
        == compiled(COUNTS.format(processors="follow"), {"orders": 4}).internal_topics
    )


def test_subscription_and_response_topics_follow_the_tables() -> None:
    application = compiled(FOREIGN_KEY, {"orders": 4, "customers": 8})
    found = counts(application)
    assert {name: count for name, count in found.items() if "changelog" not in name} == {
        "joined-subscription-registration-topic": 8,
        "joined-subscription-response-topic": 4,
    }
    assert {count for name, count in found.items() if "changelog" in name} == {2}


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_processors_require_transactions(guarantee: str) -> None:
    application = compiled(COUNTS.format(processors=2).replace("exactly_once_v2", guarantee), {"orders": 2})
    expected = [] if guarantee == "exactly_once_v2" else [ProblemCode.INVALID_PROCESSORS]
    assert codes(errors(application.problems)) == expected


def test_a_described_topology_cannot_have_processors() -> None:
    nodes, _ = read_description(SMALL, "app.txt")
    application = Application("app", Location("app.yaml"), processors=3)
    described = DescribedTopology(nodes, Location("app.yaml", 3, 5))
    problems = compile_document(TopologyDocument(application, described=described), {"orders": 3}).problems
    assert ProblemCode.INVALID_PROCESSORS in codes(problems)
    without = attrs.evolve(application, processors=None)
    problems = compile_document(TopologyDocument(without, described=described), {"orders": 3}).problems
    assert ProblemCode.INVALID_PROCESSORS not in codes(problems)


@pytest.mark.parametrize("value", ["0", "-1", "follows", "1.5"])
def test_other_numbers_do_not_fit_the_schema(value: str) -> None:
    with pytest.raises(AssertionError, match="SchemaViolation"):
        document(COUNTS.format(processors=value))
