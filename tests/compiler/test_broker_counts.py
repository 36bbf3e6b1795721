"""Counts by the broker (KIP-1071), and what broker and client reject (facts 4.6)."""

import attrs

from headwater.compiler import build_nodes
from headwater.compiler.pipeline import compile_nodes
from headwater.model.problems import ProblemCode
from tests.compiler.applications import codes, compiled, counts, document, problems_without_lints
from tests.compiler.topologies import COGROUP, EQUAL_COUNTS, MERGED_REPARTITION, UNRELATED_COUNTS

HEAD = "application: {id: app, protocol: streams}\n"
JOIN = """
topology:
  - stream: {topic: a, as: a}
  - stream: {topic: b, as: b}
  - join: {from: a, with: b, window: {difference: 1h}, storeName: s}
"""


def test_copartitioning_is_always_checked() -> None:
    application = compiled(HEAD + JOIN, {"a": 3, "b": 5})
    assert codes(problems_without_lints(application)) == [ProblemCode.NOT_COPARTITIONED]
    assert "status 2, INCORRECTLY_PARTITIONED_TOPICS" in problems_without_lints(application)[0].why


def test_a_missing_source_is_status_1() -> None:
    application = compiled(HEAD + JOIN, {"a": 3})
    assert codes(problems_without_lints(application)) == [ProblemCode.MISSING_SOURCE_TOPIC]
    assert "status 1, MISSING_SOURCE_TOPICS" in problems_without_lints(application)[0].why


def test_patterns_are_not_supported() -> None:
    application = compiled(HEAD + "topology: [{stream: {pattern: 'a.*'}}, {to: {topic: o}}]", {"ab": 1})
    assert codes(problems_without_lints(application)) == [ProblemCode.INVALID_TOPOLOGY]
    assert "UnsupportedOperationException" in problems_without_lints(application)[0].why


def test_the_application_id_does_not_matter() -> None:
    for letter in "abcdefgh":
        head = f"application: {{id: app-{letter}, protocol: streams}}"
        application = compiled(head + MERGED_REPARTITION, {"a": 5, "b": 2})
        assert counts(application)["second-repartition"] == 5
        assert problems_without_lints(application) == ()


def test_topics_downstream_of_a_missing_source_are_not_counted() -> None:
    application = compiled(HEAD + MERGED_REPARTITION, {"a": 5})
    assert "second-repartition" not in counts(application)
    assert counts(application)["first-repartition"] == 5


def test_the_topics_of_a_foreign_key_join_are_counted_by_the_broker() -> None:
    """The responses return to the sub-topology that sends the subscriptions."""
    text = """
topology:
  - table: {topic: t1, as: one}
  - table: {topic: t2, as: two}
  - join: {from: one, with: two, foreignKey: true, name: fk}
"""
    found = counts(compiled(HEAD + text, {"t1": 3, "t2": 5}))
    assert found["fk-subscription-response-topic"] == 3
    assert found["fk-subscription-registration-topic"] == 5


def test_a_named_topology_is_not_supported() -> None:
    text = HEAD + "topology: [{stream: {topic: a}}, {to: {topic: o}}]"
    named = attrs.evolve(build_nodes(document(text)), name="orders")
    [problem] = problems_without_lints(compile_nodes(document(text), named, {"a": 1}))
    assert (problem.code, problem.found) == (ProblemCode.INVALID_TOPOLOGY, "the named topology orders")
    assert problem.fix == "Build the topology without a name, or use `protocol: classic`."


def test_a_cogroup_of_repartitioned_inputs_cannot_start() -> None:
    application = compiled(HEAD + COGROUP, {"a": 2, "b": 2})
    assert ProblemCode.INVALID_TOPOLOGY in codes(problems_without_lints(application))
    assert any("IllegalStateException" in problem.why for problem in problems_without_lints(application))


def test_unrelated_explicit_counts_must_be_equal_too() -> None:
    sources = {"a": 1, "b": 1, "c": 7, "d": 2}
    clash = compiled(HEAD + UNRELATED_COUNTS, sources)
    assert codes(problems_without_lints(clash)) == [ProblemCode.CONFLICTING_PARTITIONS]
    assert problems_without_lints(clash)[0].found == "app-r1-repartition=3, app-r2-repartition=4"
    assert "status 2, INCORRECTLY_PARTITIONED_TOPICS" in problems_without_lints(clash)[0].why


def test_a_join_of_repartition_topics_gets_an_unrelated_explicit_count() -> None:
    sources = {"a": 1, "b": 1, "c": 7, "d": 2}
    equal = compiled(HEAD + EQUAL_COUNTS, sources)
    assert counts(equal)["j-left-repartition"] == 3
    classic = compiled(UNRELATED_COUNTS, sources)
    assert counts(classic)["j-left-repartition"] == 7
