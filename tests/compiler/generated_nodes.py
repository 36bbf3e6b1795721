"""Random node topologies of all shapes that a build can have."""

import attrs
from hypothesis import strategies as st

from headwater.model.nodes import (
    ChangelogKind,
    Node,
    NodeTopology,
    ProcessorNode,
    RepartitionTopic,
    SinkNode,
    SourceNode,
    StateStore,
)

_KINDS = st.sampled_from(list(ChangelogKind))


@attrs.define
class _Draft:
    """The parts drawn so far."""

    nodes: list[Node] = attrs.field(factory=list)
    parents: list[str] = attrs.field(factory=list)
    repartitions: list[RepartitionTopic] = attrs.field(factory=list)


@st.composite
def node_topologies(draw: st.DrawFn) -> NodeTopology:
    """Draw up to 30 nodes over topics t0…t4, with repartition topics, stores and co-partition groups."""
    draft = _Draft()
    for number in range(draw(st.integers(1, 30))):
        kind = draw(st.sampled_from("srppk")) if draft.parents else "s"
        prefix, distance = draw(st.sampled_from(["KSTREAM-X", "named"])), draw(st.sampled_from([1, 11]))
        name = f"{prefix}-{number * distance:010d}"
        name = name if name not in {node.name for node in draft.nodes} else f"{name}-{number}"
        if kind == "s":
            draft.nodes.append(SourceNode(name, (f"t{draw(st.integers(0, 4))}-{number}",)))
            draft.parents.append(name)
        elif kind == "r":
            _add_repartition(draw, draft, name)
        elif kind == "p":
            parents = draw(st.lists(st.sampled_from(draft.parents), min_size=1, max_size=4))
            stores = draw(
                st.lists(st.sampled_from([f"store-{i}" for i in range(6)]), max_size=2, unique=True)
            )
            draft.nodes.append(ProcessorNode(name, tuple(parents), tuple(stores)))
            draft.parents.append(name)
        else:
            draft.nodes.append(SinkNode(name, (draw(st.sampled_from(draft.parents)),), topic=f"out-{number}"))
    return _finished(draw, draft)


def _add_repartition(draw: st.DrawFn, draft: _Draft, name: str) -> None:
    topic = f"{name}-repartition"
    draft.nodes.append(SinkNode(f"{topic}-sink", (draw(st.sampled_from(draft.parents)),), topic=topic))
    draft.nodes.append(SourceNode(f"{topic}-source", (topic,)))
    draft.parents.append(f"{topic}-source")
    draft.repartitions.append(
        RepartitionTopic(topic, partitions=draw(st.one_of(st.none(), st.none(), st.integers(1, 4))))
    )


def _finished(draw: st.DrawFn, draft: _Draft) -> NodeTopology:
    used = {store for node in draft.nodes if isinstance(node, ProcessorNode) for store in node.stores}
    stores = tuple(StateStore(name, draw(_KINDS), base_ms=1000) for name in sorted(used))
    sources = [node.name for node in draft.nodes if isinstance(node, SourceNode)]
    groups = draw(st.lists(st.frozensets(st.sampled_from(sources), min_size=1, max_size=3), max_size=4))
    return NodeTopology(
        tuple(draft.nodes),
        stores,
        repartition_topics=tuple(draft.repartitions),
        copartition_groups=tuple(groups),
    )
