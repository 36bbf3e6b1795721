"""A streams group with its topology and members, as text and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headwater.describe import UnusableTopologyError, pushed_topology, write_description
from headwater.model.streams_groups import GroupTopic, StreamsGroup, StreamsMember
from headwater.planner.phrases import counted
from headwater.report.markdown import printable

_NONE = "-"


def streams_group_text(group: StreamsGroup) -> str:
    """Return lines for a terminal: the group, a table of its sub-topologies, a table of its members."""
    return "\n".join(printable(line) for line in _group_lines(group))


def _group_lines(group: StreamsGroup) -> Iterator[str]:
    yield f"{group.id}  {group.state}, {counted(len(group.members), 'member')}"
    epoch = _NONE if group.topology_epoch is None else group.topology_epoch
    assignor = f", assignor {group.assignor}" if group.assignor else ""
    yield f"epoch {group.epoch}, assignment epoch {group.assignment_epoch}, topology epoch {epoch}{assignor}"
    others = group.with_other_topology
    if others and group.topology_epoch is not None:
        yield f"{counted(len(others), 'member')} with another topology than the group"
    if group.subtopologies:
        yield ""
        tasks = _count_tasks(group)
        yield from _table_lines(
            ("sub-topology", "tasks", "reads", "writes", "changelogs"),
            [
                (
                    part.id,
                    str(tasks.get(part.id, 0)),
                    _list_names((*part.sources, *(topic.name for topic in part.repartition_sources))),
                    _list_names(part.repartition_sinks),
                    _list_names(topic.name for topic in part.changelogs),
                )
                for part in group.subtopologies
            ],
        )
    if group.members:
        yield ""
        yield from _table_lines(
            ("member", "host", "topology epoch", "active", "standby", "warm-up"),
            [
                (
                    member.client_id or member.id,
                    member.host,
                    str(member.topology_epoch) + (" (classic)" if member.is_classic else ""),
                    _list_tasks(member.active),
                    _list_tasks(member.standby),
                    _list_tasks(member.warm_up),
                )
                for member in group.members
            ],
        )
    yield ""
    yield _description_line(group)


def _description_line(group: StreamsGroup) -> str:
    try:
        pushed_topology(group)
    except UnusableTopologyError as error:
        return f"The topology cannot be imported from the brokers: {error.reason}."
    return "The brokers have the nodes of the topology: `headwater import --group` writes the document."


def streams_group_json(group: StreamsGroup) -> dict[str, Any]:
    """Return the group; `description` is a text of `Topology#describe()`, null with a reason otherwise."""
    text: str | None = None
    reason: str | None = None
    try:
        text = write_description(pushed_topology(group))
    except UnusableTopologyError as error:
        reason = error.reason
    return {
        "version": 1,
        "group": group.id,
        "state": group.state,
        "epoch": group.epoch,
        "assignmentEpoch": group.assignment_epoch,
        "topologyEpoch": group.topology_epoch,
        "assignor": group.assignor or None,
        "subtopologies": [
            {
                "id": part.id,
                "sources": list(part.sources),
                "repartitionSinks": list(part.repartition_sinks),
                "repartitionSources": [_topic_json(topic) for topic in part.repartition_sources],
                "changelogs": [_topic_json(topic) for topic in part.changelogs],
            }
            for part in group.subtopologies
        ],
        "members": [_member_json(member) for member in group.members],
        "description": text,
        "noDescription": reason,
    }


def _topic_json(topic: GroupTopic) -> dict[str, Any]:
    return {"name": topic.name, "partitions": topic.partitions, "config": dict(sorted(topic.config.items()))}


def _member_json(member: StreamsMember) -> dict[str, Any]:
    return {
        "id": member.id,
        "clientId": member.client_id,
        "host": member.host,
        "processId": member.process_id,
        "topologyEpoch": member.topology_epoch,
        "isClassic": member.is_classic,
        "active": _tasks_json(member.active),
        "standby": _tasks_json(member.standby),
        "warmUp": _tasks_json(member.warm_up),
    }


def _tasks_json(tasks: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    return {id_: list(partitions) for id_, partitions in sorted(tasks.items())}


def _count_tasks(group: StreamsGroup) -> Mapping[str, int]:
    """Return sub-topology → the number of its tasks that members have."""
    counts: dict[str, int] = {}
    for member in group.members:
        for id_, partitions in member.active.items():
            counts[id_] = counts.get(id_, 0) + len(partitions)
    return counts


def _list_names(names: "Sequence[str] | Iterator[str]") -> str:
    return ", ".join(names) or _NONE


def _list_tasks(tasks: Mapping[str, Sequence[int]]) -> str:
    """Return the tasks as Kafka Streams names them: `0_0, 0_1`."""
    return _list_names([f"{id_}_{number}" for id_, numbers in sorted(tasks.items()) for number in numbers])


def _table_lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for row in (headings, *rows):
        yield "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
