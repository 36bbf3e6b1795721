"""What the compiler makes of a document depends on the version of Kafka Streams that it names."""

import attrs
import pytest

from headwater.compiler import build_nodes, compile_document
from headwater.compiler.version_differences import DIFFERENCES, PROCESS_FIX, has_config
from headwater.describe import write_description
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import ProblemCode, errors
from headwater.model.versions import (
    SUPPORTED,
    KafkaStreamsVersion,
    is_older_than_known,
    logged_version,
    read_any_version,
    read_version,
)
from headwater.spec import load_text
from tests.compiler.applications import codes, document, topic
from tests.compiler.topologies import (
    KEY_CHANGE_IN_THE_FIRST_INPUT,
    MERGES_REPARTITIONS,
    STORE_ADDED_AGAIN,
    SUPPLIED_JOIN_STORES,
    UNNAMED_GLOBAL_STORE,
)


def _compiled(text: str, version: str, **partitions: int) -> CompiledApplication:
    made = document(text)
    read = read_version(version)
    assert read is not None
    application = attrs.evolve(made.application, kafka_streams=read)
    return compile_document(attrs.evolve(made, application=application), partitions)


@pytest.mark.parametrize(
    ("version", "policy"), [("3.7", "delete"), ("4.2", "delete"), ("4.3", "compact,delete")]
)
def test_the_changelog_of_a_supplied_join_store_is_compacted_since_4_3(version: str, policy: str) -> None:
    compiled = _compiled(SUPPLIED_JOIN_STORES, version, left=2, right=2)

    assert topic(compiled, "mine-changelog").config["cleanup.policy"] == policy
    assert topic(compiled, "others-changelog").config["cleanup.policy"] == policy


@pytest.mark.parametrize(
    ("version", "names"),
    [("4.2", ["counts-repartition", "latest-repartition"]), ("4.3", ["counts-repartition"])],
)
def test_repartitions_below_a_merge_are_one_since_4_3_if_the_first_input_changes_the_key(
    version: str, names: list[str]
) -> None:
    head = f"application: {{id: app, config: {{{MERGES_REPARTITIONS}}}}}"
    compiled = _compiled(head + KEY_CHANGE_IN_THE_FIRST_INPUT, version, plain=2, keyed=2)

    assert [t.name.removeprefix("app-") for t in compiled.internal_topics if "repartition" in t.name] == names


def test_a_global_table_with_an_unnamed_store_cannot_be_built_since_4_0() -> None:
    assert not errors(_compiled(UNNAMED_GLOBAL_STORE, "3.9", rates=1).problems)
    assert codes(errors(_compiled(UNNAMED_GLOBAL_STORE, "4.0", rates=1).problems)) == [
        ProblemCode.INVALID_TOPOLOGY
    ]


PROCESS_VALUES = """
application:
  id: app
  config: {topology.optimization: merge.repartition.topics, __enable.process.processValue.fix__: true}
topology:
  - stream: orders
  - selectKey: {key: value.id}
  - processValues: {}
  - groupByKey: {}
  - count: {materialized: counts}
"""


@pytest.mark.parametrize(
    ("version", "is_moved"),
    [("3.9", True), ("4.0.0", True), ("4.0", False), ("4.1.0", True), ("4.1", False), ("4.3", False)],
)
def test_the_fix_for_process_values_exists_since_4_0_1_and_4_1_1(version: str, *, is_moved: bool) -> None:
    compiled = _compiled(PROCESS_VALUES, version, orders=2)

    reading = next(part for part in compiled.subtopologies if part.repartition_topics)
    assert ("KSTREAM-PROCESSVALUES-0000000002" in reading.nodes) is is_moved


@pytest.mark.parametrize(
    ("version", "changelogs"),
    [
        ("4.1", []),
        ("4.2.1", []),
        ("4.2", ["app-seen-changelog"]),
        ("4.3", []),
        ("4.4", ["app-seen-changelog"]),
    ],
)
def test_the_store_of_a_builder_that_is_added_again_keeps_its_changelog_since_4_2_2(
    version: str, changelogs: list[str]
) -> None:
    compiled = _compiled(STORE_ADDED_AGAIN, version, orders=2)

    assert [each.name for each in compiled.internal_topics] == changelogs


def test_read_only_stores_exist_since_3_8() -> None:
    text = """
topology:
  - addReadOnlyStateStore: {store: {name: rates, kind: keyValue}, topic: rates, sourceName: source, name: n}
"""
    (problem,) = errors(_compiled(text, "3.7", rates=1).problems)

    assert problem.code is ProblemCode.NOT_IN_VERSION
    assert problem.summary == "`addReadOnlyStateStore` exists since Kafka Streams 3.8.0."
    assert not errors(_compiled(text, "3.8", rates=1).problems)


@pytest.mark.parametrize(("version", "order"), [("3.9", "[v, j-Buffer]"), ("4.0", "[j-Buffer, v]")])
def test_stores_of_a_processor_are_described_in_the_order_of_the_version(version: str, order: str) -> None:
    made = document("""
topology:
  - table: {topic: t, materialized: {supplier: {name: v, kind: versionedKeyValue, retention: 1h}}, as: t}
  - stream: a
  - leftJoin: {with: t, grace: 30m, name: j}
""")
    read = read_version(version)
    assert read is not None
    of_version = attrs.evolve(made, application=attrs.evolve(made.application, kafka_streams=read))

    assert f"Processor: j (stores: {order})" in write_description(build_nodes(of_version))


@pytest.mark.parametrize("reset", ["none", "by_duration:PT1H"])
def test_offset_resets_that_the_version_does_not_have_are_a_problem_with_a_line(reset: str) -> None:
    text = f"topology:\n  - table: {{topic: orders, offsetReset: '{reset}'}}\n"

    (problem,) = errors(_compiled(text, "3.9", orders=1).problems)

    assert problem.code is ProblemCode.NOT_IN_VERSION
    assert problem.summary == f"`offsetReset: {reset}` exists since Kafka Streams 4.0.0."
    assert problem.location is not None
    assert problem.location.line == 3
    assert not errors(_compiled(text, "4.0", orders=1).problems)


def test_an_offset_reset_in_a_branch_is_found() -> None:
    text = """
topology:
  - stream: orders
  - split:
      branches: [{where: value.ok, then: [{stream: {topic: other, offsetReset: none}}]}]
"""
    assert codes(errors(_compiled(text, "3.9", orders=1, other=1).problems)) == [ProblemCode.NOT_IN_VERSION]


@pytest.mark.parametrize(
    ("version", "value", "is_allowed"),
    [
        ("3.7", "3.6", True),
        ("3.7", "3.7", False),
        ("4.1", "0.10.0", True),
        ("4.2", "2.3", False),
        ("4.2", "2.4", True),
        ("4.3", "4.2", True),
        ("4.3", "4.3", False),
    ],
)
def test_upgrade_from_names_an_earlier_release(version: str, value: str, *, is_allowed: bool) -> None:
    loaded = load_text(
        f"application: {{id: app, kafkaStreams: '{version}', config: {{upgrade.from: '{value}'}}}}\n"
        "topology: [{stream: orders}]",
        "app.yaml",
    )

    found = codes(errors(loaded.problems))

    assert found == ([] if is_allowed else [ProblemCode.INVALID_CONFIG])


@pytest.mark.parametrize("guarantee", ["exactly_once", "exactly_once_beta"])
def test_the_old_guarantees_exist_before_4_0(guarantee: str) -> None:
    text = f"""
application: {{id: app, kafkaStreams: "3.9", config: {{processing.guarantee: {guarantee}}}}}
topology: [{{stream: orders}}]
"""
    assert not _compiled(text, "3.9", orders=1).problems
    (problem,) = errors(_compiled(text, "4.0", orders=1).problems)
    assert (problem.code, problem.expected) == (
        ProblemCode.INVALID_CONFIG,
        "`at_least_once` or `exactly_once_v2`",
    )


def test_explicit_naming_has_no_effect_before_4_1() -> None:
    text = """
application: {id: app, config: {ensure.explicit.internal.resource.naming: true}}
topology: [{stream: orders}, {groupByKey: {}}, {count: {}}]
"""
    assert not errors(_compiled(text, "4.0", orders=1).problems)
    assert codes(errors(_compiled(text, "4.1", orders=1).problems)) == [ProblemCode.UNNAMED_RESOURCES]


@pytest.mark.parametrize("version", [str(version) for version in SUPPORTED])
@pytest.mark.parametrize(("call", "this"), [("leftJoin", "JOINTHIS"), ("outerJoin", "OUTERTHIS")])
def test_eager_joins_have_no_shared_store_in_any_version(call: str, this: str, version: str) -> None:
    text = f"""
topology:
  - stream: {{topic: a, as: a}}
  - stream: {{topic: b, as: b}}
  - {call}: {{from: a, with: b, window: {{difference: 5m, eager: true}}}}
"""
    compiled = _compiled(text, version, a=2, b=2)

    assert [(each.name, each.config["retention.ms"]) for each in compiled.internal_topics] == [
        (f"app-KSTREAM-{name}-store-changelog", str(2 * 24 * 60 * 60 * 1000))
        for name in sorted([f"{this}-0000000004", "OUTEROTHER-0000000005"])
    ]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("4.1", "4.1.2"),
        ("4.1.0", "4.1.0"),
        ("3.07", "3.7.2"),
        ("4.1.3", None),
        ("3.6", None),
        ("4.1\n", None),
    ],
)
def test_a_release_is_its_latest_patch(text: str, version: str | None) -> None:
    found = read_version(text)

    assert (str(found) if found else None) == version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.8", "2.8.2"),
        ("2.8.1", "2.8.1"),
        ("2.8.9", "2.8.2"),
        ("4.2.9", "4.2.2"),
        ("4.4.0", "4.4.0"),
        ("4.4", "4.4.0"),
        ("5.0", "5.0.0"),
        ("7.6.0", None),
        ("2.4.1", None),
        ("3.99", None),
        ("four", None),
    ],
)
def test_a_running_application_may_have_an_older_or_later_version(text: str, version: str | None) -> None:
    found = read_any_version(text)

    assert (str(found) if found else None) == version


@pytest.mark.parametrize(
    ("logged", "version"),
    [
        ("3.6.1", "3.6.1"),
        ("7.6.0-ccs", "3.6"),
        ("6.2.1-ccs", "2.8"),
        ("5.5.2-ce", "2.5"),
        ("8.0.0-ccs", "4.0"),
        ("3.6.0.redhat-00002", "3.6.0"),
        ("9.9.9-ccs", "9.9.9"),
    ],
)
def test_the_log_of_a_vendor_has_the_release_of_kafka(logged: str, version: str) -> None:
    log = f"INFO Kafka Streams version: 2.0.0\nINFO Kafka Streams version: {logged}\nINFO started\n"
    assert logged_version(log) == version
    assert logged_version("INFO started") is None


def test_versions_before_the_oldest_are_recognized() -> None:
    assert is_older_than_known("2.4.1")
    assert is_older_than_known("1.0")
    assert not is_older_than_known("2.5")
    assert not is_older_than_known("5.0")


def test_a_difference_of_patches_is_in_each_later_release() -> None:
    having = [str(version) for version in SUPPORTED if PROCESS_FIX.is_in(version)]

    assert having == ["4.0.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0"]
    assert not PROCESS_FIX.is_in(KafkaStreamsVersion(4, 1, 0))
    assert not PROCESS_FIX.is_in(KafkaStreamsVersion(4, 0, 0))


def test_a_config_is_in_the_versions_since_its_first() -> None:
    assert has_config("any.other.config", SUPPORTED[0])
    assert [has_config("dsl.store.format", version) for version in SUPPORTED] == [False] * 6 + [True] * 2


def test_the_table_is_in_the_order_of_versions() -> None:
    assert sorted(DIFFERENCES, key=lambda each: each.since[0]) == list(DIFFERENCES)
