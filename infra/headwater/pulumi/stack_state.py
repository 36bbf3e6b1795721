"""The state of a stack: setup records, the intentions of unfinished runs, topics and ACLs."""

import json
import re
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

_KAFKA_PACKAGE = "kafka:"
_OF_PULUMI = "pulumi:"
"""The package of stacks, providers and references to stacks: with them, Pulumi deletes nothing else."""
_TOPIC = re.compile(
    r"(?!.*tableflow)(?:.*(?:kafka|confluent|redpanda|:msk/).*topic|.*eventhub)", re.IGNORECASE
)
"""The types of topics of all providers, such as `confluentcloud:index/kafkaTopic:KafkaTopic`.

Confluent's `TableflowTopic` is a table of a topic.
"""


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
class OtherResource:
    """A resource that is in no component of Headwater; `topic` or `acl` is what it describes, if known.

    `is_deleted`: whether Pulumi deletes what the resource describes when no program declares it. This is not
    so for components, for resources that a program only reads (`Topic.get`), and with `retain_on_delete`.
    None: not known, because Pulumi does not show it to programs.
    """

    urn: str
    type: str
    topic: str | None = None
    acl: Acl | None = None
    is_deleted: bool | None = None

    @property
    def may_be_deleted(self) -> bool:
        """Whether it is deleted, if that is known; otherwise whether it is a topic or part of a cluster."""
        if self.is_deleted is None:
            return self.topic is not None or self.type.startswith(_KAFKA_PACKAGE)
        return self.is_deleted


@attrs.frozen
class StackState:
    """What earlier runs left in the state of a stack.

    `records` and `repairs` are by application id, `topics` by name, `acls` with their URNs. `released` are
    topics that lost their protection in an earlier run. `stack_id` is the random id of the stack in ownership
    records; empty before the first run that has written one. `others` are the resources that
    Headwater has not registered.
    """

    records: Mapping[str, SetupRecord] = attrs.field(factory=dict)
    topics: Mapping[str, TopicInState] = attrs.field(factory=dict)
    released: frozenset[str] = frozenset()
    repairs: Mapping[str, RepairRecord] = attrs.field(factory=dict)
    acls: Mapping[Acl, str] = attrs.field(factory=dict)
    stack_id: str = ""
    name: str = ""
    """Project and stack, separated by a slash; empty for a state without resources."""
    others: tuple[OtherResource, ...] = ()

    @classmethod
    def from_outputs(cls, resources: Mapping[str, Properties]) -> "StackState":
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
            others=tuple(_read_others(resources)),
        )


UNREADABLE_STATE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""The exceptions of a text that is not an exported state."""


def exported_resources(text: str) -> Mapping[str, Properties]:
    """Return URN → resource of an exported state, without those that a replacement has left to delete.

    Raises one of `UNREADABLE_STATE`.
    """
    resources = (json.loads(text)["deployment"] or {}).get("resources") or ()
    return {resource["urn"]: resource for resource in resources if not resource.get("delete")}


def with_exported(
    others: Iterable[OtherResource], exported: Mapping[str, Properties]
) -> tuple[OtherResource, ...]:
    """Return `others`, with what an exported state shows of them: whether Pulumi deletes them."""
    shown = {other.urn: other.is_deleted for other in _read_others(exported)}
    return tuple(attrs.evolve(other, is_deleted=shown.get(other.urn, other.is_deleted)) for other in others)


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
    """Return topic → what the state of the stack records of it, as outputs of Pulumi's component."""
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


def _read_others(resources: Mapping[str, Properties]) -> Iterator[OtherResource]:
    """Yield the resources that neither Headwater nor Pulumi itself has registered.

    `resources` is URN → `type` and `outputs`; in an exported state also `custom`, `external`,
    `retainOnDelete`.
    """
    for urn, resource in resources.items():
        type_ = resource["type"]
        _, _, qualified_type, name = urn.split("::", maxsplit=3)
        if type_.startswith(_OF_PULUMI) or COMPONENT_TYPE in qualified_type.split("$"):
            continue
        outputs = resource.get("outputs") or {}
        yield OtherResource(
            urn,
            type_,
            topic=(_topic_name(outputs) or name) if _TOPIC.fullmatch(type_) else None,
            acl=_allowed_acl(outputs) if type_ == ACL_TYPE else None,
            is_deleted=_is_deleted(resource) if "custom" in resource else None,
        )


def _is_deleted(resource: Properties) -> bool:
    is_kept = resource.get("external") or resource.get("retainOnDelete")
    return bool(resource["custom"]) and not is_kept


def _topic_name(outputs: Properties) -> str | None:
    """Return the topic's name: `topicName` of Confluent and Aiven, `spec` and `metadata` of Strimzi."""
    spec, metadata = outputs.get("spec"), outputs.get("metadata")
    names = (
        outputs.get("topicName"),
        spec.get("topicName") if isinstance(spec, Mapping) else None,
        outputs.get("name"),
        metadata.get("name") if isinstance(metadata, Mapping) else None,
    )
    return next((name for name in names if isinstance(name, str) and name), None)


def _read_acl(outputs: Properties) -> Acl:
    permission = Permission(
        kind=ResourceKind(outputs["aclResourceType"]),
        name=outputs["aclResourceName"],
        operation=Operation(outputs["aclOperation"]),
        pattern=Pattern(outputs["resourcePatternTypeFilter"]),
    )
    return Acl(outputs["aclPrincipal"], outputs["aclHost"], permission)


def _allowed_acl(outputs: Properties) -> Acl | None:
    """Return the ACL, None for an ACL that Headwater never declares, such as an ACL that denies access."""
    try:
        return _read_acl(outputs) if outputs["aclPermissionType"] == "Allow" else None
    except (KeyError, ValueError, TypeError):
        return None


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
