"""Create the document of an imported description, and add what the description does not contain."""

from collections.abc import Iterator
from typing import Any

import attrs

from headwater.compiler.described.joins import unclear_groupings
from headwater.compiler.described.structure import Structure
from headwater.describe import read_description
from headwater.model.nodes import ChangelogKind, NodeTopology, SourceNode, StateStore
from headwater.model.topology import Application, CreatedBy, TopologyDocument
from headwater.spec import parse_document

_KINDS: dict[ChangelogKind, dict[str, Any]] = {
    ChangelogKind.KEY_VALUE: {"kind": "timestampedKeyValue"},
    ChangelogKind.VERSIONED: {"kind": "versionedKeyValue"},
    ChangelogKind.WINDOWED: {"kind": "window"},
    ChangelogKind.WINDOWED_DUPLICATES: {"kind": "window", "retainDuplicates": True},
}


def described(application: Application, text: str, nodes: NodeTopology) -> TopologyDocument:
    """Return a document with `text` instead of the calls that built `nodes`."""
    describe: dict[str, Any] = {
        "text": text,
        "repartitions": {t.name: t.partitions for t in nodes.repartition_topics if t.partitions is not None},
        "stores": store_details(nodes),
        "copartitioned": [group for group in _copartitioned(nodes) if len(group) > 1],
        "createdBy": created_by(text, nodes),
    }
    documents = parse_document({"application": {"id": application.id}, "describe": describe})
    assert not documents.problems, documents.problems
    return attrs.evolve(documents.documents[0], application=application)


def created_by(text: str, nodes: NodeTopology) -> dict[str, str]:
    """Return the calls that created repartition topics above cogroups, where the text does not show it."""
    structure = Structure.from_topology(read_description(text)[0])
    grouped = {source for group in nodes.copartition_groups for source in group}
    calls = {True: CreatedBy.REPARTITION, False: CreatedBy.GROUPING}
    return {
        topic: calls[structure.readers[topic].name in grouped].value
        for topic in unclear_groupings(structure, frozenset(structure.internal_topics), {})
    }


def store_details(nodes: NodeTopology) -> dict[str, dict[str, Any]]:
    """Return all details of the stores that a text contains."""
    return {
        store.name: _detail(store) for store in nodes.stores if not store.is_global and _is_used(store, nodes)
    }


def _is_used(store: StateStore, nodes: NodeTopology) -> bool:
    return any(store.name in getattr(node, "stores", ()) for node in nodes.nodes)


def _detail(store: StateStore) -> dict[str, Any]:
    detail: dict[str, Any] = {**_KINDS[store.kind], "logging": store.logged}
    if store.base_ms is not None:
        detail["retention"] = store.base_ms
    if store.overrides:
        detail["overrides"] = dict(store.overrides)
    if store.changelog_topic is not None:
        detail["sourceTopic"] = store.changelog_topic
    return detail


def _copartitioned(nodes: NodeTopology) -> Iterator[list[str]]:
    topics = {node.name: node.topics for node in nodes.nodes if isinstance(node, SourceNode)}
    for group in nodes.copartition_groups:
        yield sorted({topic for source in group for topic in topics.get(source, ())})
