"""Upgrades for tests: documents with the version that they name, compared with a later one."""

from collections.abc import Mapping
from textwrap import dedent

import attrs

from headwater.compiler import compile_documents
from headwater.model.cluster import ClusterSnapshot, LiveGroup, LiveTopic
from headwater.model.problems import ProblemCode, Severity
from headwater.model.topology import TopologyDocument
from headwater.model.versions import SUPPORTED, read_version
from headwater.planner.upgrade import ApplicationUpgrade, Upgrade, find_upgrade
from headwater.spec import load_text
from tests.compiler import topologies
from tests.compiler.applications import document

MERGED = f"""
application:
  id: merged
  kafkaStreams: "4.2"
  config: {{{topologies.MERGES_REPARTITIONS}}}
{topologies.KEY_CHANGE_IN_THE_FIRST_INPUT}"""
JOINS = f"""
application: {{id: joins, kafkaStreams: "3.9"}}
{topologies.SUPPLIED_JOIN_STORES}"""
GLOBAL = f"""
application: {{id: rates, kafkaStreams: "3.8"}}
{topologies.UNNAMED_GLOBAL_STORE}"""
STORE_ADDED_AGAIN = f"""
application: {{id: again, kafkaStreams: "4.2"}}
{topologies.STORE_ADDED_AGAIN}"""
PLAIN = """
application: {id: plain, kafkaStreams: "4.1"}
topology:
  - stream: orders
  - groupByKey: {}
  - count: {materialized: counts}
"""
NO_STATE = """
application: {id: no-state, kafkaStreams: "4.1"}
topology: [{stream: orders}, {to: copies}]
"""
FLAG = """
application:
  id: flag
  kafkaStreams: "4.1.0"
  config: {topology.optimization: all, __enable.process.processValue.fix__: true}
topology:
  - stream: orders
  - process: {as: processed}
  - groupByKey: {from: processed}
  - count: {materialized: counts}
  - groupByKey: {from: processed}
  - reduce: {add: value, materialized: latest}
"""
UNKNOWN_COUNTS = """
application: {id: broken, kafkaStreams: "4.1"}
topology: [{stream: missing}, {groupByKey: {}}, {count: {}}]
"""
COUNTS = {"plain": 3, "keyed": 3, "left": 2, "right": 2, "orders": 4, "rates": 1, "clicks": 6}


def upgrade(
    *texts: str,
    to: str = "4.3",
    counts: Mapping[str, int] = COUNTS,
    snapshot: ClusterSnapshot | None = None,
) -> Upgrade:
    """Return the upgrade of the documents to the version `to`."""
    documents = [_document(text) for text in texts]
    version = read_version(to)
    assert version is not None
    later = [
        attrs.evolve(each, application=attrs.evolve(each.application, kafka_streams=version))
        for each in documents
    ]
    return find_upgrade(
        compile_documents(documents, counts), compile_documents(later, counts), version, snapshot=snapshot
    )


def _document(text: str) -> TopologyDocument:
    loaded = load_text(dedent(text).lstrip(), "app.yaml")
    for problem in loaded.problems:
        assert problem.code is ProblemCode.NOT_IN_VERSION, problem
        assert problem.severity is Severity.WARNING, problem
    return loaded.documents[0]


def clean() -> Upgrade:
    """Return an upgrade that changes nothing."""
    return upgrade(PLAIN, NO_STATE)


def changed() -> Upgrade:
    """Return an upgrade with changes of names, settings and errors."""
    return upgrade(MERGED, JOINS, GLOBAL, FLAG, PLAIN)


def incomplete() -> Upgrade:
    """Return an upgrade with applications that cannot be compared."""
    return upgrade(UNKNOWN_COUNTS, JOINS.replace("3.9", "4.2"), PLAIN, to="4.1")


TO = SUPPORTED[-1]
COUNT = document("topology: [{stream: orders}, {groupByKey: {}}, {count: {materialized: s}}]")
COUNT = attrs.evolve(COUNT, application=attrs.evolve(COUNT.application, names_version=True))


def only(*texts: str, to: str = "4.3", snapshot: ClusterSnapshot | None = None) -> ApplicationUpgrade:
    (found,) = upgrade(*texts, to=to, snapshot=snapshot).applications
    return found


def kinds(found: ApplicationUpgrade) -> list[str]:
    return [change.kind.value for change in found.changes]


def cluster(*topics: str) -> ClusterSnapshot:
    return ClusterSnapshot(
        "a-cluster",
        1,
        {name: LiveTopic(name, "", 3, 1) for name in topics},
        {"merged": LiveGroup("merged", "Stable", 2)},
    )
