"""Compare the topology that runs, as far as the coordinator of its group knows it, with the document.

The coordinator of a streams group has the topology (KIP-1071, `StreamsGroupDescribe`; nodes since KIP-1331),
the coordinator of a classic group the topics that it reads.
"""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from headwater.describe import UnusableTopologyError, pushed_topology
from headwater.model.cluster import ClusterSnapshot, LiveGroup
from headwater.model.compiled import CompiledApplication, SubTopology
from headwater.model.nodes import NodeTopology
from headwater.model.problems import Severity
from headwater.model.streams_groups import GroupSubtopology, StreamsGroup
from headwater.model.topology import Protocol
from headwater.planner.drift.findings import Finding, FindingKind
from headwater.planner.phrases import counted, few_names
from headwater.planner.plans import ApplicationPlan
from headwater.planner.run import other_subscription

_FIX = (
    "Find out which of them is right. If the application was deployed with another topology, change the "
    "document in the same way. Otherwise deploy the application with the topology of the document. A streams "
    "group keeps the topology of its first members (KAFKA-20170): docs/changing-topologies.md says how the "
    "application keeps its offsets. Under a new application id, it begins without state and offsets."
)
_WHY = (
    "Headwater plans the internal topics of the document. What runs needs others, or has tasks with other "
    "topics."
)


def other_topology(part: ApplicationPlan, snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Yield each difference between the document and the topology of the application's streams group.

    Of a classic group, only the topics that it reads are known. Counts of topics are compared with the topics
    themselves, by other findings.
    """
    compiled = part.compiled
    group = None if compiled is None else snapshot.groups.get(part.application_id)
    if compiled is None or group is None:
        return
    if not group.is_streams:
        yield from _subscription_findings(compiled, group)
        return
    if compiled.application.protocol is not Protocol.STREAMS:
        yield _other_protocol(compiled)
        return
    described = snapshot.streams_groups.get(part.application_id)
    if described is None or described.topology_epoch is None:
        return
    if not compiled.is_observed:
        found = tuple(_other_subtopologies(compiled, described))
        yield from found or _other_nodes(compiled, described)
        yield from _other_settings(compiled, described)
    yield from _other_members(compiled, described)


def _subscription_findings(compiled: CompiledApplication, group: LiveGroup) -> Iterator[Finding]:
    """Yield a finding if the members of a classic group read other topics than the document."""
    other = other_subscription(compiled, group)
    if other is not None:
        yield _topology_finding(
            compiled,
            "The running application reads other topics than the document.",
            expected=few_names(other.declared) or "no others",
            found=few_names(other.running) or "no others",
            why="Headwater plans the internal topics of the document. Topics that only one of both reads "
            "belong to different topologies.",
            fix="Find out which of them is right. If the application was deployed with another topology, "
            "change the document in the same way. Otherwise deploy the application with the topology of the "
            "document. If a rolling restart is in progress, compare again when it is complete.",
        )


@attrs.frozen(order=True)
class _Topics:
    """The topics of a sub-topology, by which it is recognized."""

    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    changelogs: tuple[str, ...]

    @property
    def text(self) -> str:
        phrases = (
            f"reads {few_names(self.sources)}",
            *([f"writes {few_names(self.sinks)}"] if self.sinks else []),
            *([f"has changelogs {few_names(self.changelogs)}"] if self.changelogs else []),
        )
        return ", ".join(phrases)


def _other_subtopologies(compiled: CompiledApplication, group: StreamsGroup) -> Iterator[Finding]:
    sinks = compiled.repartition_sinks
    declared = {
        str(part.id): _declared_topics(part, sinks[part.id])
        for part in compiled.subtopologies
        if not part.is_global
    }
    running = {part.id: _running_topics(part) for part in group.subtopologies}
    if any(part.source_patterns for part in compiled.subtopologies):
        return  # which topics match is decided when the application starts
    for id_ in sorted(declared.keys() | running.keys(), key=lambda each: (len(each), each)):
        ours, theirs = declared.get(id_), running.get(id_)
        if ours != theirs:
            yield _topology_finding(
                compiled,
                f"Sub-topology {id_} of the running application differs from the document.",
                expected="none" if ours is None else ours.text,
                found=f"none (topology epoch {group.topology_epoch})" if theirs is None else theirs.text,
            )


def _declared_topics(part: SubTopology, sinks: tuple[str, ...]) -> _Topics:
    return _Topics(
        tuple(sorted(part.sources)),
        sinks,
        tuple(sorted(set(part.changelog_topics) - set(part.sources))),
    )


def _running_topics(part: GroupSubtopology) -> _Topics:
    sources = {*part.sources, *(topic.name for topic in part.repartition_sources)}
    changelogs = {topic.name for topic in part.changelogs} - sources
    return _Topics(tuple(sorted(sources)), part.repartition_sinks, tuple(sorted(changelogs)))


def _other_nodes(compiled: CompiledApplication, group: StreamsGroup) -> Iterator[Finding]:
    """Yield a finding if the sub-topologies have the same topics, but other nodes."""
    try:
        running = _nodes_by_group(pushed_topology(group))
    except UnusableTopologyError:
        return
    declared = {part.id: frozenset(part.nodes) for part in compiled.subtopologies}
    if declared == running:
        return
    ours, theirs = frozenset().union(*declared.values()), frozenset().union(*running.values())
    yield _topology_finding(
        compiled,
        "The running application has other nodes than the document, with the same topics.",
        severity=Severity.INFO,
        expected=few_names(sorted(ours - theirs)) or "the same nodes, in other sub-topologies",
        found=few_names(sorted(theirs - ours)) or "no others",
        why="Names of nodes are in metrics, logs and `Topology#describe()`, not in data.",
        fix="Change the document, so that pictures and comparisons show what runs.",
    )


def _other_settings(compiled: CompiledApplication, group: StreamsGroup) -> Iterator[Finding]:
    """Yield a finding for each topic for which the running application requires other settings.

    They are part of the topology that the group keeps, so an application with the document's settings does
    not start in it.
    """
    running = {topic.name: topic for part in group.subtopologies for topic in part.changelogs}
    running |= {topic.name: topic for part in group.subtopologies for topic in part.repartition_sources}
    for topic in compiled.internal_topics:
        required = running.get(topic.name)
        if required is not None and required.config and dict(required.config) != dict(topic.config):
            keys = sorted(
                key
                for key in required.config.keys() | topic.config.keys()
                if required.config.get(key) != topic.config.get(key)
            )
            yield _topology_finding(
                compiled,
                f"The running application requires other settings of topic {topic.name} than the document.",
                expected=_list_settings(topic.config, keys),
                found=_list_settings(required.config, keys),
            )


def _list_settings(config: Mapping[str, str], keys: Sequence[str]) -> str:
    return ", ".join(f"{key} {config.get(key, 'not set')}" for key in keys)


def _nodes_by_group(topology: NodeTopology) -> Mapping[int, frozenset[str]]:
    groups: dict[int, set[str]] = {}
    for name, number in topology.printed_groups.items():
        groups.setdefault(number, set()).add(name)
    return {number: frozenset(names) for number, names in groups.items()}


def _other_members(compiled: CompiledApplication, group: StreamsGroup) -> Iterator[Finding]:
    others = group.with_other_topology
    if others:
        epochs = ", ".join(map(str, sorted({member.topology_epoch for member in others})))
        yield _topology_finding(
            compiled,
            f"{counted(len(others), 'member')} of the group {'has' if len(others) == 1 else 'have'} another "
            "topology than the group.",
            expected=f"topology epoch {group.topology_epoch}, as the group",
            found=f"epoch {epochs}: {few_names(sorted(member.client_id for member in others))}",
            why="The coordinator gives tasks of the group's topology. Members with another one get none, or "
            "stop with an exception.",
            fix="Complete the rolling restart, so that all instances run the same topology, or restart these "
            "instances with it.",
        )


def _other_protocol(compiled: CompiledApplication) -> Finding:
    return _topology_finding(
        compiled,
        "The group of the running application uses the streams protocol.",
        expected=f"{compiled.application.protocol.value}, as the document declares",
        found="streams",
        why="The coordinator decides partition counts differently from the classic protocol.",
        fix="Set `application.protocol: streams` in the document.",
    )


def _topology_finding(
    compiled: CompiledApplication,
    what: str,
    *,
    expected: str,
    found: str,
    severity: Severity = Severity.WARNING,
    why: str = _WHY,
    fix: str = _FIX,
) -> Finding:
    return Finding(
        kind=FindingKind.TOPOLOGY,
        severity=severity,
        application=compiled.application.id,
        what=what,
        expected=expected,
        found=found,
        why=why,
        fix=fix,
        location=compiled.application.at,
    )
