"""Partition counts by the group leader's assignor; the numbers are those of Kafka Streams 4.1.1."""

from string import ascii_lowercase

import attrs
import pytest

from headwater.compiler import build_nodes, compile_document
from headwater.compiler.pipeline import compile_nodes
from headwater.model.nodes import RepartitionTopic
from headwater.model.problems import COMPILE, OFFLINE, ProblemCode, Severity
from headwater.model.topology import Protocol
from tests.compiler.applications import codes, compiled, counts, document, problems_without_lints, topic

MERGED = """
application: {id: APP}
topology:
  - stream: {topic: a, as: a}
  - selectKey: {key: x, as: rekeyed}
  - repartition: {name: first, as: first}
  - stream: {topic: b, as: b}
  - merge: {from: first, with: b}
  - groupBy: {name: second}
  - count: {materialized: counts}
"""


def test_derived_from_the_topics_that_the_writer_reads() -> None:
    text = "topology: [{stream: {topics: [a, b]}}, {groupBy: {name: by}}, {count: {materialized: counts}}]"
    application = compiled(text, {"a": 3, "b": 5})
    assert counts(application) == {"by-repartition": 5, "counts-changelog": 5}
    assert [part.tasks for part in application.subtopologies] == [5, 5]


READ_BY_NAME = """
topology:
  - stream: {topic: a}
  - repartition: {name: r}
  - to: {topic: b}
  - stream: {topic: app-r-repartition}
"""


def test_a_repartition_topic_that_is_read_by_its_full_name_has_to_exist() -> None:
    application = compiled(READ_BY_NAME, {"a": 3})
    (problem,) = problems_without_lints(application)
    assert (problem.code, problem.severity) == (ProblemCode.MISSING_SOURCE_TOPIC, Severity.WARNING)
    assert (problem.topic, problem.node) == ("app-r-repartition", "KSTREAM-SOURCE-0000000005")
    assert "MissingSourceTopicException" in problem.why
    assert "Use its handle instead of its name" in problem.fix
    assert "create it with 3 partitions" in problem.fix
    # the plan creates the topic
    assert counts(application) == {"r-repartition": 3}
    assert application.missing_sources == ()

    existing = compiled(READ_BY_NAME, {"a": 3, "app-r-repartition": 3})
    assert counts(existing) == {"r-repartition": 3}
    assert problems_without_lints(existing) == ()


@pytest.mark.parametrize("protocol", Protocol)
def test_the_handle_of_a_repartition_topic_needs_no_existing_topic(protocol: Protocol) -> None:
    text = READ_BY_NAME.replace("{name: r}", "{name: r, as: r}").replace(
        "- stream: {topic: app-r-repartition}", "- foreach: {from: r}"
    )
    application = compiled(f"application: {{id: app, protocol: {protocol.value}}}{text}", {"a": 3})
    assert counts(application) == {"r-repartition": 3}
    assert problems_without_lints(application) == ()


def test_without_a_cluster_the_count_of_a_repartition_topic_is_not_asked_for() -> None:
    (problem,) = problems_without_lints(compile_document(document(READ_BY_NAME), {"a": 3}, OFFLINE))
    assert problem.severity is Severity.WARNING
    assert "--partitions" not in problem.fix
    (unknown,) = (
        each
        for each in problems_without_lints(compile_document(document(READ_BY_NAME), {}, OFFLINE))
        if each.topic == "app-r-repartition" and each.code is ProblemCode.MISSING_SOURCE_TOPIC
    )
    assert unknown.expected == "a topic with the partition count that the plan gives it"


def test_without_a_cluster_another_count_of_a_repartition_topic_is_an_error() -> None:
    given = {"a": 3, "app-r-repartition": 7}
    (problem,) = problems_without_lints(compile_document(document(READ_BY_NAME), given, OFFLINE))
    assert (problem.code, problem.topic) == (ProblemCode.CONFLICTING_PARTITIONS, "app-r-repartition")
    assert (problem.expected, problem.found) == ("3 partitions", "7 partitions")

    followed = READ_BY_NAME.replace("{name: r}", "{name: r, partitions: 7}")
    assert problems_without_lints(compile_document(document(followed), given, OFFLINE)) == ()
    # a plan compares the count of the topic with its setup record
    assert problems_without_lints(compiled(READ_BY_NAME, given)) == ()


def test_with_a_cluster_another_count_of_a_repartition_topic_is_an_error_without_a_plan() -> None:
    given = {"a": 3, "app-r-repartition": 7}
    (problem,) = problems_without_lints(compile_document(document(READ_BY_NAME), given, COMPILE))
    assert (problem.code, problem.topic) == (ProblemCode.CONFLICTING_PARTITIONS, "app-r-repartition")
    assert problem.fix == "Set `partitions: 7` at its `repartition`."

    followed = READ_BY_NAME.replace("{name: r}", "{name: r, partitions: 7}")
    assert problems_without_lints(compile_document(document(followed), given, COMPILE)) == ()


@pytest.mark.parametrize(("count", "is_refused"), [(1, False), (7, True)])
def test_with_a_static_partitioner_the_next_run_adds_partitions(count: int, is_refused: bool) -> None:  # noqa: FBT001
    config = "application: {id: app, config: {static.partitioner.class: initial-hash}}"
    given = {"a": 3, "app-r-repartition": count}
    found = problems_without_lints(compile_document(document(f"{config}{READ_BY_NAME}"), given, COMPILE))
    assert [problem.code for problem in found] == [ProblemCode.CONFLICTING_PARTITIONS] * is_refused


def test_a_global_table_may_read_a_repartition_topic_that_the_plan_creates() -> None:
    text = READ_BY_NAME.replace("- stream: {topic: app-r", "- globalTable: {topic: app-r")
    (problem,) = problems_without_lints(compiled(text, {"a": 3}))
    assert (problem.code, problem.severity) == (ProblemCode.MISSING_SOURCE_TOPIC, Severity.WARNING)


def test_an_explicit_count_stays() -> None:
    text = """
    topology: [{stream: {topic: a}}, {repartition: {name: r, partitions: 7}}, {toTable: {materialized: t}}]
    """
    application = compiled(text, {"a": 3})
    assert counts(application) == {"r-repartition": 7, "t-changelog": 7}
    assert topic(application, "r-repartition").pinned


def test_an_explicit_count_of_zero_is_an_error() -> None:
    text = "topology: [{stream: {topic: a}}, {repartition: {name: r, partitions: 1}}, {to: {topic: o}}]"
    nodes = build_nodes(document(text))
    zero = attrs.evolve(nodes, repartition_topics=(RepartitionTopic("r-repartition", partitions=0),))
    application = compile_nodes(document(text), zero, {"a": 3})
    problem = problems_without_lints(application)[0]
    assert (problem.code, problem.topic) == (ProblemCode.UNDECIDABLE_PARTITIONS, "app-r-repartition")
    assert (problem.expected, problem.found) == ("at least 1", "0")


def join(left: str, right: str) -> str:
    """Return a windowed join of a and b, each with the given step."""
    first = f"  - stream: {{topic: a}}\n  {left}" if left else "  - stream: {topic: a, as: a}"
    second = f"  - stream: {{topic: b}}\n  {right}" if right else "  - stream: {topic: b, as: b}"
    joined = "  - join: {from: a, with: b, window: {difference: 1h}, name: j, storeName: s}"
    return f"topology:\n{first}\n{second}\n{joined}"


REKEY = "- selectKey: {key: x, as: %s}"
EXPLICIT = "- repartition: {name: %s-wide, partitions: %d, as: %s}"


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (REKEY % "a", "", {"j-left-repartition": 5}),
        (REKEY % "a", REKEY % "b", {"j-left-repartition": 5, "j-right-repartition": 5}),
        (EXPLICIT % ("a", 4, "a"), REKEY % "b", {"a-wide-repartition": 4, "j-right-repartition": 4}),
    ],
    ids=["to the other side's", "both to the larger", "to the explicit one"],
)
def test_copartitioned_repartition_topics_get_equal_counts(
    left: str, right: str, expected: dict[str, int]
) -> None:
    application = compiled(join(left, right), {"a": 3, "b": 5})
    found = counts(application)
    assert {name: found[name] for name in expected} == expected
    assert {found["s-this-join-store-changelog"], found["s-other-join-store-changelog"]} == set(
        expected.values()
    )
    assert problems_without_lints(application) == ()


def test_an_explicit_count_that_differs_from_an_external_topic_is_an_error() -> None:
    application = compiled(join(EXPLICIT % ("a", 4, "a"), ""), {"a": 3, "b": 5})
    problem = problems_without_lints(application)[0]
    assert (problem.code, problem.topic) == (ProblemCode.CONFLICTING_PARTITIONS, "app-a-wide-repartition")
    assert (problem.expected, problem.found) == ("5", "4")


def test_explicit_counts_that_differ_fail_the_build() -> None:
    application = compiled(join(EXPLICIT % ("a", 4, "a"), EXPLICIT % ("b", 3, "b")), {"a": 3, "b": 3})
    assert codes(problems_without_lints(application)) == [ProblemCode.CONFLICTING_PARTITIONS]
    [problem] = problems_without_lints(application)
    assert (problem.topic, problem.found) == (
        "app-a-wide-repartition",
        "a-wide-repartition=4, b-wide-repartition=3",
    )
    assert problem.location
    assert problem.location.pointer == "/topology/1/repartition"


def test_explicit_counts_are_checked_in_each_group() -> None:
    """Before the wrong group: one with a source topic, one with a derived count, one with equal counts."""

    def joined(name: str, left: str, right: str) -> str:
        sides = "".join(
            f"  - stream: {{topic: {name}{side}}}\n"
            f"  - repartition: {{name: {name}{side}, {count} as: {name}{side}}}\n"
            for side, count in (("l", left), ("r", right))
        )
        window = f"window: {{difference: 1h}}, name: j{name}, storeName: s{name}"
        return f"{sides}  - join: {{from: {name}l, with: {name}r, {window}}}\n"

    four, three = "partitions: 4,", "partitions: 3,"
    groups = (joined("c", "", three), joined("d", four, four), joined("e", four, three))
    sources = {f"{name}{side}": 2 for name in "cde" for side in "lr"}
    application = compiled("\n".join((join(REKEY % "a", ""), *groups)), sources | {"a": 3, "b": 5})
    [problem] = problems_without_lints(application)
    assert (problem.code, problem.found) == (
        ProblemCode.CONFLICTING_PARTITIONS,
        "el-repartition=4, er-repartition=3",
    )


def test_names_of_nodes_that_do_not_exist_are_dropped_from_a_group() -> None:
    """Kafka Streams drops them silently."""
    text = join(REKEY % "a", "")
    nodes = build_nodes(document(text))
    groups = tuple(frozenset({*group, "ghost"}) for group in nodes.copartition_groups)
    ghosts = attrs.evolve(nodes, copartition_groups=(*groups, frozenset({"ghost"})))
    application = compile_nodes(document(text), ghosts, {"a": 3, "b": 5})
    assert counts(application)["j-left-repartition"] == 5


def test_groups_that_do_not_depend_on_a_missing_source_are_enforced() -> None:
    elsewhere = "\n  - stream: {topic: missing}\n  - groupBy: {name: other}\n  - count: {materialized: more}"
    application = compiled(join(REKEY % "a", "") + elsewhere, {"a": 3, "b": 5})
    assert counts(application)["j-left-repartition"] == 5
    assert codes(problems_without_lints(application)) == [ProblemCode.MISSING_SOURCE_TOPIC]


def test_equal_counts_are_co_partitioned() -> None:
    assert problems_without_lints(compiled(join("", ""), {"a": 3, "b": 3})) == ()


def test_without_a_repartition_topic_nothing_is_checked() -> None:
    application = compiled(join("", ""), {"a": 3, "b": 5})
    assert counts(application) == {"s-this-join-store-changelog": 5, "s-other-join-store-changelog": 5}
    assert [(p.code, p.severity) for p in problems_without_lints(application)] == [
        (ProblemCode.UNCHECKED_COPARTITIONING, Severity.WARNING)
    ]


def test_any_repartition_topic_enables_the_check() -> None:
    elsewhere = "\n  - stream: {topic: c}\n  - repartition: {name: r}\n  - to: {topic: out}"
    application = compiled(join("", "") + elsewhere, {"a": 3, "b": 5, "c": 1})
    assert codes(problems_without_lints(application)) == [ProblemCode.NOT_COPARTITIONED]
    assert problems_without_lints(application)[0].found == "a=3, b=5"


FOREIGN_KEY = """
topology:
  - table: {topic: t1, as: one}
  - table: {topic: t2, as: two}
  - join: {from: one, with: two, foreignKey: true, name: fk}
"""


def test_foreign_key_join() -> None:
    found = counts(compiled(FOREIGN_KEY, {"t1": 3, "t2": 5}))
    assert found["fk-subscription-response-topic"] == 3
    assert found["fk-subscription-registration-topic"] == 5
    assert found["fk-subscription-store-changelog"] == 5


def test_counts_may_depend_on_the_application_id() -> None:
    """The second repartition topic gets 5, or 2 if it is processed before the first one is decided."""
    found = {}
    for letter in "abcdefghij":
        application = compiled(MERGED.replace("APP", f"app-{letter}"), {"a": 5, "b": 2})
        found[letter] = counts(application)["second-repartition"]
        problem = problems_without_lints(application)[0]
        assert problem.code is ProblemCode.PARTITIONS_DEPEND_ON_APPLICATION_ID
        assert problem.severity is Severity.WARNING
        assert problem.topic == f"app-{letter}-second-repartition"
        assert problem.found == f"{found[letter]} with this application id"
        assert (problem.expected or "").startswith("5")
    assert set(found.values()) == {2, 5}


def test_a_count_of_one_is_an_alternative_too() -> None:
    problems = problems_without_lints(compiled(MERGED.replace("APP", "app-a"), {"a": 5, "b": 1}))
    assert codes(problems) == [ProblemCode.PARTITIONS_DEPEND_ON_APPLICATION_ID]
    assert "gets 1 or 5 partitions" in problems[0].summary
    assert problems[0].location
    assert problems[0].location.pointer == "/topology/6/count"


STREAM, COUNT = "- stream: {topic: b, as: b}", "- count: {materialized: counts}"
TABLE = "- table: {topic: b, materialized: %s}\n  - toStream: {as: b}"
REUSE = "{id: APP, config: {topology.optimization: reuse.ktable.source.topics}}"
CHANGELOGS = {
    "key value": MERGED,
    "with a setting": MERGED.replace(
        COUNT, "- count: {materialized: {store: counts, logging: {segment.bytes: 1048576}}}"
    ),
    "windowed": MERGED.replace(COUNT, f"- windowedBy: {{tumbling: {{size: 1h}}}}\n  {COUNT}"),
    "versioned": MERGED.replace(
        STREAM, TABLE % "{supplier: {name: v, kind: versionedKeyValue, retention: 1h}}"
    ),
    "of a table": MERGED.replace(STREAM, TABLE % "{store: kept, logging: {segment.bytes: 1048576}}"),
    "source topic": MERGED.replace(
        STREAM, TABLE % "{store: kept, logging: {segment.bytes: 1048576}}"
    ).replace("{id: APP}", REUSE),
    "joined": f"{MERGED}  - stream: {{topic: d, as: d}}\n"
    "  - join: {from: b, with: d, window: {difference: 1h}, storeName: s}\n",
}


@pytest.mark.parametrize(
    ("changelogs", "expected"),
    [
        ("key value", "25522552522555555255525525"),
        ("with a setting", "25222555552555255252525522"),
        ("windowed", "25522525552555222252525525"),
        ("versioned", "55222522222555552252555222"),
        ("of a table", "55555522225555552525552225"),
        ("source topic", "52252252525255522555522525"),
        ("joined", "55525552222552552525552222"),
    ],
)
def test_the_order_follows_the_hash_codes_of_the_subtopologies(changelogs: str, expected: str) -> None:
    """`expected` are the counts that Kafka Streams 4.1.1 decides for the application ids app-a to app-z."""
    found = [
        counts(compiled(CHANGELOGS[changelogs].replace("APP", f"app-{letter}"), {"a": 5, "b": 2, "d": 2}))
        for letter in ascii_lowercase
    ]
    assert "".join(str(each["second-repartition"]) for each in found) == expected


def test_counts_that_no_order_changes_do_not_depend_on_the_application_id() -> None:
    explicit = MERGED.replace("name: first,", "name: first, partitions: 5,")
    application = compiled(explicit, {"a": 5, "b": 2})
    assert counts(application)["second-repartition"] == 5
    assert problems_without_lints(application) == ()


def test_a_missing_source_is_reported_and_other_topics_are_counted() -> None:
    text = """
    topology:
      - stream: {topic: there}
      - groupBy: {name: by}
      - count: {materialized: counts}
      - stream: {topic: missing}
      - groupBy: {name: other}
      - count: {materialized: more}
      - globalTable: {topic: nowhere, as: g}
    """
    application = compiled(text, {"there": 3})
    assert counts(application) == {"by-repartition": 3, "counts-changelog": 3}
    assert application.missing_sources == ("missing", "nowhere")
    assert [(p.code, p.topic) for p in problems_without_lints(application)] == [
        (ProblemCode.MISSING_SOURCE_TOPIC, "missing"),
        (ProblemCode.MISSING_SOURCE_TOPIC, "nowhere"),
    ]
