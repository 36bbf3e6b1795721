"""The state of a stack: setup records, the intentions of unfinished runs, topics and ACLs."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from headwater.model.acls import Acl, Operation, Pattern, Permission, ResourceKind
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.planner.document_settings import read_settings, read_texts

COMPONENT_TYPE = "headwater:kafka:InternalTopics"
SETUP_TYPE = "headwater:kafka:Setup"
TOPIC_TYPE = "kafka:index/topic:Topic"
ACL_TYPE = "kafka:index/acl:Acl"

Properties = Mapping[str, Any]


@attrs.frozen
class TopicInState:
    """A topic in the state, with which Pulumi compares; it may differ from the cluster."""

    partitions: int
    config: Mapping[str, str]
    replication_factor: int | None = None


@attrs.frozen
class RepairRecord:
    """How many runs have repaired an application; `texts` are the repairs of the latest, by topic.

    `settings` are the changed settings of the latest run in which the document had other settings, by key.
    """

    times: int = 0
    texts: Mapping[str, str] = attrs.field(factory=dict)
    settings: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class StackState:
    """What earlier runs left in the state of a stack.

    `records` and `repairs` are by application id, `topics` by name, `acls` with their URNs. `released` are
    topics that lost their protection in an earlier run. `stack_id` is the random id of the stack in ownership
    records; empty before the first run that has written one. `other_topics` are topics of resources that
    Headwater has not registered, by URN.
    """

    records: Mapping[str, SetupRecord] = attrs.field(factory=dict)
    topics: Mapping[str, TopicInState] = attrs.field(factory=dict)
    released: frozenset[str] = frozenset()
    repairs: Mapping[str, RepairRecord] = attrs.field(factory=dict)
    acls: Mapping[Acl, str] = attrs.field(factory=dict)
    stack_id: str = ""
    name: str = ""
    """Project and stack, separated by a slash; empty for a state without resources."""
    other_topics: Mapping[str, str] = attrs.field(factory=dict)

    @classmethod
    def of(cls, resources: Mapping[str, Properties]) -> "StackState":
        """Read the result of `readStackResourceOutputs`: URN → `type` and `outputs`."""
        finished = dict(_outputs_of(resources, COMPONENT_TYPE))
        started = dict(_outputs_of(resources, SETUP_TYPE))
        acls = dict(_read_acls(resources))
        return cls(
            records={
                id_: record
                for id_ in {**finished, **started}
                if (record := _read_record(id_, finished.get(id_, {}), started.get(id_, {}), acls))
                is not None
            },
            topics={
                name: _read_topic(outputs)
                for name, outputs in _outputs_of(resources, TOPIC_TYPE, below=COMPONENT_TYPE)
            },
            released=frozenset(
                name for outputs in finished.values() for name in outputs.get("released") or ()
            ),
            repairs={
                id_: RepairRecord(
                    int(outputs.get("repaired") or 0),
                    dict(outputs.get("repairs") or {}),
                    read_texts(outputs.get("changed") or {}),
                )
                for id_, outputs in started.items()
            },
            acls={acl: urn for acl, (_, urn) in acls.items()},
            stack_id=next(
                (
                    str(outputs["stackId"])
                    for outputs in (*finished.values(), *started.values())
                    if outputs.get("stackId")
                ),
                "",
            ),
            name=next(map(_stack_name, resources), ""),
            other_topics=dict(_other_topics(resources)),
        )


def record_outputs(record: SetupRecord | None) -> dict[str, Any]:
    """Return the outputs of a component that record a finished setup."""
    if record is None:
        return {}
    return {
        "topics": topic_outputs(record.topics.values()),
        "initialProcessors": record.initial_processors,
        **({"initialBySource": dict(sorted(record.initial.items()))} if record.initial else {}),
        "generatedNames": sorted(record.generated),
        "origins": dict(sorted(record.origins.items())),
        "clusterId": record.cluster_id,
        "kafkaStreams": record.kafka_streams,
        "settings": dict(sorted(record.settings.items())),
        "retired": record.retired,
    }


def topic_outputs(topics: Iterable[RecordedTopic]) -> dict[str, Any]:
    return {
        topic.name: {
            "id": topic.topic_id,
            "partitions": topic.partitions,
            "sink": topic.is_sink,
            **({"retired": True} if topic.is_retired else {}),
        }
        for topic in topics
    }


def _stack_name(urn: str) -> str:
    stack, project = urn.removeprefix("urn:pulumi:").split("::", maxsplit=2)[:2]
    return f"{project}/{stack}"


def _outputs_of(
    resources: Mapping[str, Properties], type_: str, below: str | None = None
) -> Iterator[tuple[str, Properties]]:
    suffix = type_ if below is None else f"{below}${type_}"
    for urn, resource in resources.items():
        if resource["type"] == type_:
            _, _, qualified_type, name = urn.split("::", maxsplit=3)
            if qualified_type.endswith(suffix):
                yield name, resource.get("outputs") or {}


def _other_topics(resources: Mapping[str, Properties]) -> Iterator[tuple[str, str]]:
    """Yield URN and topic of each topic resource that is in no component of Headwater."""
    for urn, resource in resources.items():
        if resource["type"] == TOPIC_TYPE:
            _, _, qualified_type, name = urn.split("::", maxsplit=3)
            if not qualified_type.endswith(f"{COMPONENT_TYPE}${TOPIC_TYPE}"):
                yield urn, str((resource.get("outputs") or {}).get("name") or name)


def _read_topic(outputs: Properties) -> TopicInState:
    replicas = outputs.get("replicationFactor")
    return TopicInState(
        partitions=int(outputs.get("partitions") or 0),
        config=dict(outputs.get("config") or {}),
        replication_factor=int(replicas) if replicas else None,
    )


def urn_name(urn: str) -> str:
    """Return the resource name in a URN."""
    return urn.split("::", maxsplit=3)[3]


def acl_name(application_id: str, acl: Acl) -> str:
    """Return the resource name of an ACL: application id, slash, ACL."""
    return f"{application_id}/{acl.text}"


def acl_inputs(acl: Acl) -> dict[str, str]:
    """Return the provider's inputs for an ACL."""
    return {
        "aclPrincipal": acl.principal,
        "aclHost": acl.host,
        "aclOperation": acl.permission.operation.value,
        "aclPermissionType": "Allow",
        "aclResourceType": acl.permission.kind.value,
        "aclResourceName": acl.permission.name,
        "resourcePatternTypeFilter": acl.permission.pattern.value,
    }


def _read_acls(resources: Mapping[str, Properties]) -> Iterator[tuple[Acl, tuple[str, str]]]:
    """Yield each ACL in the state with its application's id and its URN."""
    for urn, resource in resources.items():
        if resource["type"] == ACL_TYPE:
            _, _, qualified_type, name = urn.split("::", maxsplit=3)
            outputs = resource.get("outputs") or {}
            if qualified_type.endswith(f"{COMPONENT_TYPE}${ACL_TYPE}") and outputs:
                yield _read_acl(outputs), (name.partition("/")[0], urn)


def _read_acl(outputs: Properties) -> Acl:
    permission = Permission(
        kind=ResourceKind(outputs["aclResourceType"]),
        name=outputs["aclResourceName"],
        operation=Operation(outputs["aclOperation"]),
        pattern=Pattern(outputs["resourcePatternTypeFilter"]),
    )
    return Acl(outputs["aclPrincipal"], outputs["aclHost"], permission)


def _read_record(
    id_: str, finished: Properties, started: Properties, acls: Mapping[Acl, tuple[str, str]]
) -> SetupRecord | None:
    if finished and "topics" not in finished:
        return None
    return SetupRecord(
        application_id=id_,
        topics={**_read_topics(started), **_read_topics(finished)},
        initial_processors=int(finished.get("initialProcessors") or 0),
        initial={topic: int(count) for topic, count in (finished.get("initialBySource") or {}).items()},
        generated=frozenset(finished.get("generatedNames") or ()),
        origins=dict(finished.get("origins") or {}),
        cluster_id=str(finished.get("clusterId") or ""),
        kafka_streams=str(finished.get("kafkaStreams") or ""),
        settings=read_settings(id_, finished.get("settings") or {}),
        retired=bool(finished.get("retired")),
        unfinished=not finished,
        acls=frozenset(acl for acl, (owner, _) in acls.items() if owner == id_),
    )


def _read_topics(outputs: Properties) -> dict[str, RecordedTopic]:
    return {
        name: RecordedTopic(
            name,
            topic["id"],
            int(topic["partitions"]),
            is_sink=bool(topic["sink"]),
            is_retired=bool(topic.get("retired")),
        )
        for name, topic in (outputs.get("topics") or {}).items()
    }
