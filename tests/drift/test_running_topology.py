"""What runs in a streams group is compared with the document."""

from textwrap import dedent

import attrs
import pytest

from headwater.compiler import build_nodes, compile_document
from headwater.describe import read_description, write_description
from headwater.model.cluster import ClusterSnapshot, LiveGroup, LiveTopic
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Severity
from headwater.model.streams_groups import StreamsGroup, StreamsMember
from headwater.planner.drift import Finding, FindingKind, find_drift
from headwater.spec import load_text
from tests.streams_groups.groups import group_of_application, group_of_text

ORDERS = """
application: {id: orders, protocol: streams}
topology:
  - stream: in
  - groupBy: {name: by}
  - count: {materialized: counts}
  - toStream: {name: changes}
  - to: out
"""
WITHOUT_REPARTITION = ORDERS.replace("groupBy: {name: by}", "groupByKey: {}")
OTHER_NAME = ORDERS.replace("name: changes", "name: updates")
COUNTS = {"in": 3, "out": 1}


def compiled(text: str) -> CompiledApplication:
    (document,) = load_text(dedent(text).lstrip(), "orders.yaml").documents
    return compile_document(document, COUNTS)


def found(
    document: CompiledApplication,
    running: StreamsGroup | None,
    group: LiveGroup = LiveGroup("orders", "Stable", 1, is_streams=True),  # noqa: B008 - immutable
) -> list[Finding]:
    """Return the findings about the topology on a cluster that has all topics."""
    topics = {
        topic.name: LiveTopic(topic.name, "", topic.partitions, 1, topic.config)
        for topic in document.internal_topics
    }
    topics |= {name: LiveTopic(name, "", count, 1) for name, count in COUNTS.items()}
    snapshot = ClusterSnapshot(
        "c",
        1,
        topics=topics,
        described=frozenset(topics),
        groups={"orders": group},
        streams_groups={} if running is None else {"orders": running},
    )
    drift = find_drift([document], snapshot)
    return [finding for finding in drift.findings if finding.kind is FindingKind.TOPOLOGY]


def nodes_of(text: str) -> StreamsGroup:
    """Return the group of the running application with its nodes, as the brokers have them."""
    (document,) = load_text(dedent(text).lstrip(), "orders.yaml").documents
    described = read_description(write_description(build_nodes(document)))[0]
    pushed = group_of_text("orders", described)
    return attrs.evolve(group_of_application(compiled(text)), nodes=pushed.nodes, status=pushed.status)


def test_the_same_topology_is_no_difference() -> None:
    assert not found(compiled(ORDERS), group_of_application(compiled(ORDERS)))
    assert not found(compiled(ORDERS), nodes_of(ORDERS))


def test_other_subtopologies_are_found() -> None:
    findings = found(compiled(ORDERS), group_of_application(compiled(WITHOUT_REPARTITION)))
    assert [(each.severity, each.expected, each.found) for each in findings] == [
        (
            Severity.WARNING,
            "reads in, writes orders-by-repartition",
            "reads in, has changelogs orders-counts-changelog",
        ),
        (
            Severity.WARNING,
            "reads orders-by-repartition, has changelogs orders-counts-changelog",
            "none (topology epoch 0)",
        ),
    ]
    assert "new application id" in findings[0].fix


def test_other_names_of_nodes_are_a_hint() -> None:
    (finding,) = found(compiled(ORDERS), nodes_of(OTHER_NAME))
    assert (finding.severity, finding.expected, finding.found) == (Severity.INFO, "changes", "updates")


def test_other_settings_of_internal_topics_are_found() -> None:
    """The brokers refuse an application with the document's settings in this group."""
    other = ORDERS.replace("protocol: streams}", "protocol: streams, config: {topic.segment.ms: 600000}}")
    first, second = found(compiled(ORDERS), group_of_application(compiled(other)))
    assert "orders-by-repartition" in first.what
    assert "orders-counts-changelog" in second.what
    assert (second.expected, second.found) == ("segment.ms not set", "segment.ms 600000")


def test_members_with_another_epoch_are_found() -> None:
    running = group_of_application(compiled(ORDERS))
    running = attrs.evolve(
        running,
        topology_epoch=2,
        members=(
            StreamsMember(id="a", client_id="client-a", topology_epoch=2),
            StreamsMember(id="b", client_id="client-b", topology_epoch=1),
        ),
    )
    (finding,) = found(compiled(ORDERS), running)
    assert finding.what == "1 member of the group has another topology than the group."
    assert finding.found == "epoch 1: client-b"


def test_the_streams_protocol_of_a_document_without_it_is_found() -> None:
    classic = compiled(ORDERS.replace(", protocol: streams", ""))
    (finding,) = found(classic, group_of_application(compiled(ORDERS)))
    assert (finding.expected, finding.found) == ("classic, as the document declares", "streams")


def test_groups_without_a_topology_are_not_compared() -> None:
    new = attrs.evolve(group_of_application(compiled(ORDERS)), topology_epoch=None, subtopologies=())
    assert not found(compiled(ORDERS), new)
    assert not found(compiled(ORDERS), None)
    assert not found(compiled(ORDERS), None, LiveGroup("orders", "Stable", 1))


def classic(*subscribed: str, assignor: str = "stream") -> LiveGroup:
    return LiveGroup("orders", "Stable", 2, assignor=assignor, subscribed=frozenset(subscribed))


def test_topics_that_a_classic_application_reads_are_compared() -> None:
    document = compiled(ORDERS.replace(", protocol: streams", ""))
    assert not found(document, None, classic("in", "orders-by-repartition"))
    (finding,) = found(document, None, classic("in", "orders-other-repartition"))
    assert (finding.severity, finding.expected, finding.found) == (
        Severity.WARNING,
        "orders-by-repartition",
        "orders-other-repartition",
    )
    (finding,) = found(document, None, classic("in"))
    assert (finding.expected, finding.found) == ("orders-by-repartition", "no others")


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(classic("other", assignor="range"), id="another program has the same group id"),
        pytest.param(classic(), id="the members are joining"),
        pytest.param(LiveGroup("orders", "Empty"), id="stopped"),
    ],
)
def test_a_group_that_shows_no_topology_is_not_compared(group: LiveGroup) -> None:
    assert not found(compiled(ORDERS.replace(", protocol: streams", "")), None, group)


def test_topics_of_patterns_are_not_compared() -> None:
    document = compiled("""
application: {id: orders}
topology:
  - stream: {pattern: "in.*"}
  - foreach: null
""")
    assert not found(document, None, classic("in", "in-2"))


def test_a_source_of_a_global_table_is_not_expected() -> None:
    """Its consumer has no group."""
    document = compiled("""
application: {id: orders}
topology:
  - globalTable: {topic: out, materialized: names}
  - stream: in
  - foreach: null
""")
    assert not found(document, None, classic("in"))
