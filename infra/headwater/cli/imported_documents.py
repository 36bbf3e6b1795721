"""The documents that `headwater import` writes: one from a description, or one for each application found."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from headwater.compiler.observed import default_config, open_questions
from headwater.describe import write_description
from headwater.model.cluster import ClusterSnapshot, GroupFacts, GroupType, LiveTopic
from headwater.model.durations import duration_text
from headwater.model.nodes import NodeTopology, TopicKind
from headwater.model.problems import Location
from headwater.model.streams_groups import GroupSubtopology
from headwater.model.topology import Application, ObservedTopology, Protocol, StoreDetail, UnknownDetails
from headwater.model.versions import DEFAULT_VERSION, KafkaStreamsVersion
from headwater.planner.adoption import FoundApplication
from headwater.planner.evidence.names import is_created_by_streams
from headwater.planner.phrases import counted, listed
from headwater.report.markdown import printable
from headwater.spec.files import is_skipped
from headwater.spec.scalars import plain_scalar
from headwater.spec.yaml_text import DocumentDumper, document_yaml

_NOWHERE = Location("")
_UNKNOWN_VERSION = (
    "The version of Kafka Streams is not visible: correct `kafkaStreams` if the application runs another one."
)
_ENDINGS = {"-changelog": TopicKind.CHANGELOG, "-repartition": TopicKind.REPARTITION}


@attrs.frozen(kw_only=True)
class DescribedApplication:
    """A running application: its description, and the details that a description does not have.

    `repartitions` is topic without prefix and suffix → explicit count. `stores` is store → details, in the
    form of a document.
    """

    application_id: str
    text: str
    kafka_streams: str = DEFAULT_VERSION.release
    names_version: bool = True
    """Whether the log or the user names `kafka_streams`."""
    config: Mapping[str, str] = attrs.field(factory=dict)
    repartitions: Mapping[str, int] = attrs.field(factory=dict)
    stores: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    copartitioned: Sequence[Sequence[str]] = ()
    created_by: Mapping[str, str] = attrs.field(factory=dict)
    unknown: UnknownDetails = attrs.field(factory=UnknownDetails)
    uses_streams_protocol: bool = False
    setup: Mapping[str, Any] = attrs.field(factory=dict)
    """Options of `application.setup`."""
    broker_configs: Sequence[str] = ()
    """Topic configs of the cluster that are not in Kafka's table: of a vendor, or of another release."""
    observed: str = ""
    """A sentence about the application's group, for a comment."""
    kept_application: Mapping[str, Any] = attrs.field(factory=dict)
    """Further keys of `application` in the document that the import updates."""
    kept_sections: Mapping[str, Any] = attrs.field(factory=dict)
    """Its other sections, such as `acls` and `topics`."""

    def document(self, questions: Iterable[str] = ()) -> str:
        """Return the document as YAML: the description is a literal block, `questions` are comments."""
        application: dict[str, Any] = {"id": self.application_id, "kafkaStreams": self.kafka_streams}
        if self.uses_streams_protocol:
            application["protocol"] = Protocol.STREAMS.value
        if self.config:
            application["config"] = dict(self.config)
        # The group has priority over the `protocol` of the existing document.
        application |= {key: value for key, value in self.kept_application.items() if key not in application}
        setup = {**application.get("setup", {}), **self.setup}
        if self.broker_configs:
            allowed = dict.fromkeys((*setup.get("allowTopicConfigs", ()), *self.broker_configs))
            setup["allowTopicConfigs"] = list(allowed)
        if setup:
            application["setup"] = setup
        described: dict[str, Any] = {"text": _Block(self.text)}
        if self.repartitions:
            described["repartitions"] = dict(self.repartitions)
        if self.stores:
            described["stores"] = {name: dict(details) for name, details in self.stores.items()}
        if self.copartitioned:
            described["copartitioned"] = [list(group) for group in self.copartitioned]
        if self.created_by:
            described["createdBy"] = {topic: str(call) for topic, call in self.created_by.items()}
        if self.unknown:
            described["unknown"] = _unknown_options(self.unknown)
        content = {"version": 1, "application": application, "describe": described, **self.kept_sections}
        text = document_yaml(content, _BlockDumper)
        if self.observed:
            text += f"# {printable(self.observed)}\n"
        return text + "".join(f"# Missing: {printable(question)}\n" for question in questions)


def group_sentence(id_: str, snapshot: ClusterSnapshot) -> str:
    """Return a sentence about the application's group on the cluster."""
    group = snapshot.groups.get(id_)
    if group is None:
        return f"Cluster {snapshot.cluster_id} has no group {id_}: the application is not running there."
    if not group.is_available:
        return f"The coordinator of group {id_} on cluster {snapshot.cluster_id} does not answer."
    if group.members is None:
        return f"Group {id_} on cluster {snapshot.cluster_id} uses the streams protocol."
    if group.is_streams:
        members = f"{group.members} member{'' if group.members == 1 else 's'} of the streams protocol"
        return f"Group {id_} on cluster {snapshot.cluster_id} is in state {group.state} with {members}."
    members = f"{group.members} member{'' if group.members == 1 else 's'}"
    return f"Group {id_} on cluster {snapshot.cluster_id} is in state {group.state} with {members}."


def _unknown_options(unknown: UnknownDetails) -> Mapping[str, Any]:
    options = {
        "stores": {name: _Line(details) for name, details in unknown.stores.items()},
        "repartitions": _Line(unknown.repartitions),
        "createdBy": _Line(unknown.created_by),
        "application": _Line(unknown.application),
    }
    return {key: value for key, value in options.items() if value}


def store_options(detail: StoreDetail) -> Mapping[str, Any]:
    """Return the details of a store in the form of a document."""
    options: dict[str, Any] = {} if detail.kind is None else {"kind": detail.kind}
    if detail.retention_ms is not None:
        options["retention"] = plain_scalar(duration_text(detail.retention_ms))
    if detail.retain_duplicates:
        options["retainDuplicates"] = True
    if not detail.logging:
        options["logging"] = False
    if detail.overrides:
        options["overrides"] = dict(detail.overrides)
    if detail.source_topic is not None:
        options["sourceTopic"] = detail.source_topic
    if detail.has_own_changelog:
        options["ownChangelog"] = True
    return options


def pushed_application(
    found: FoundApplication,
    nodes: NodeTopology,
    config: Mapping[str, str],
    version: KafkaStreamsVersion | None,
) -> DescribedApplication:
    """Return a running application whose clients have sent the nodes of its topology to the brokers."""
    return DescribedApplication(
        application_id=found.id,
        text=write_description(nodes),
        kafka_streams=(version or DEFAULT_VERSION).written,
        names_version=version is not None,
        config=config,
        setup=_adoption_setup(found, config),
        uses_streams_protocol=True,
    )


def observed_document(
    found: FoundApplication,
    cluster_id: str,
    config: Mapping[str, str],
    version: KafkaStreamsVersion | None = None,
    *,
    reason: str = "",
) -> str:
    """Return the document of an application found on a cluster, as YAML.

    Comments at its beginning list what the cluster does not show. `cluster_id` is empty for an application of
    Strimzi's resources. `config` are configs that the document
    declares for the application. `version` is what the user says that it runs, None if nothing. `reason` is a
    clause: why the topology is not known although the brokers could have it.
    """
    written = (version or DEFAULT_VERSION).written
    application: dict[str, Any] = {"id": found.id, "kafkaStreams": written}
    if found.group is not None and found.group.type is GroupType.STREAMS:
        application["protocol"] = Protocol.STREAMS.value
    if config:
        application["config"] = dict(config)
    if setup := _adoption_setup(found, config):
        application["setup"] = setup
    observed = {
        **({"sources": dict(found.sources)} if found.sources else {}),
        "topics": {topic.name.removeprefix(f"{found.id}-"): _describe_topic(topic) for topic in found.topics},
        "unknown": [unknown.value for unknown in found.unknown],
    }
    content = {"version": 1, "application": application, "observed": observed}
    text = document_yaml(content, _FlowListDumper)
    comments = [
        *_comment_lines(found, cluster_id),
        *([f"Its nodes were not imported: {reason}."] if reason else []),
        *([] if version else [_UNKNOWN_VERSION]),
    ]
    return "".join(f"# {printable(line)}\n" for line in comments) + text


def file_names(ids: Iterable[str]) -> Mapping[str, str]:
    """Return application id → file name, without duplicates on case-insensitive file systems.

    No name is skipped where documents are read from their folder, as the names of hidden files are.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for id_ in ids:
        prefix = "application" if id_.startswith(".") else "application-"
        stem = f"{prefix}{id_}" if is_skipped(f"{id_}.yaml") else id_
        number = 1
        while (name := f"{stem}.yaml" if number == 1 else f"{stem}-{number}.yaml").casefold() in taken:
            number += 1
        taken.add(name.casefold())
        names[id_] = name
    return names


def kind_of(topic: str) -> TopicKind:
    """Return the kind of an internal topic, by its name."""
    return next((kind for end, kind in _ENDINGS.items() if topic.endswith(end)), TopicKind.FK_SUBSCRIPTION)


class _Block(str):
    """A text that YAML writes as a literal block."""

    __slots__ = ()


class _Line(list[str]):
    """A list that YAML writes on one line."""

    __slots__ = ()


class _BlockDumper(DocumentDumper):
    """Writes `_Block` as a literal block, or in quotes if YAML cannot."""


_BlockDumper.add_representer(
    _Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")
)

_BlockDumper.add_representer(
    _Line, lambda dumper, items: dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=True)
)


def _adoption_setup(found: FoundApplication, config: Mapping[str, str]) -> dict[str, Any]:
    """Return the setup options with which the first run adopts the topics."""
    options = {
        "adopt": config.get("internal.topics.setup") == "manual",
        "allowIdOverlap": bool(found.prefix_ids),
    }
    # A user named them, or the group reads them: the first run must not depend on that.
    unproven = [topic.name for topic in found.topics if not is_created_by_streams(topic)]
    return {
        **{key: True for key, is_needed in options.items() if is_needed},
        **({"adoptTopics": unproven} if unproven else {}),
    }


def _describe_topic(topic: LiveTopic) -> dict[str, Any]:
    kind = kind_of(topic.name)
    described: dict[str, Any] = {"kind": kind.value, "partitions": topic.partitions}
    if topic.replication_factor > 0:
        described["replicationFactor"] = topic.replication_factor
    if topic.config != default_config(kind):
        described["config"] = dict(sorted(topic.config.items()))
    return described


def _comment_lines(found: FoundApplication, cluster_id: str) -> Iterator[str]:
    yield from _cluster_comments(found, cluster_id) if cluster_id else _strimzi_comments(found)
    yield from _list_doubts(found)


def _strimzi_comments(found: FoundApplication) -> Iterator[str]:
    """Yield what resources show: they have neither the state of groups nor subscriptions."""
    yield f"{found.id} as declared in Strimzi's resources, written by `headwater import --all --strimzi`."
    if found.sources:
        yield "Its sources are the topics that its users may read: remove the topics that it does not read."


def _cluster_comments(found: FoundApplication, cluster_id: str) -> Iterator[str]:
    """Yield what the cluster shows of the group and of the sources."""
    yield f"{found.id} as observed on cluster {cluster_id}, written by `headwater import --all`."
    yield _group_comment(found.id, found.group)
    if found.streams_group is not None and found.sources:
        yield "Its sources are the sources of its sub-topologies; global tables are not visible."
        yield from (_subtopology_comment(part) for part in found.streams_group.subtopologies)
    elif found.sources:
        yield (
            "Its sources are the topics that it subscribes to; global tables are not visible."
            if found.group is not None and found.group.subscribed
            else "Its sources are the topics with its offsets; others and global tables are not visible."
        )


def _list_doubts(found: FoundApplication) -> Iterator[str]:
    """Yield what the user has to check or to add."""
    for topic in found.missing_sources:
        yield f"It has offsets of {topic}, but this topic does not exist."
    for other in found.prefix_ids:
        yield (
            f"Its id begins with the id of {other}: Kafka's reset tool, run for {other}, deletes its topics."
        )
    for ambiguity in found.ambiguities:
        yield f"Uncertain: {ambiguity}"
    observed = ObservedTopology((), _NOWHERE, unknown=dict.fromkeys(found.unknown, _NOWHERE))
    for question in open_questions(Application(found.id, _NOWHERE), observed):
        yield f"Missing: {question.summary} {question.fix}"


def _subtopology_comment(part: GroupSubtopology) -> str:
    repartitions = tuple(topic.name for topic in part.repartition_sources)
    changelogs = tuple(topic.name for topic in part.changelogs)
    phrases = (
        f"reads {listed((*part.sources, *repartitions))}",
        *([f"writes {listed(part.repartition_sinks)}"] if part.repartition_sinks else []),
        *([f"has the changelog topics {listed(changelogs)}"] if changelogs else []),
    )
    return f"Sub-topology {part.id} {', '.join(phrases)}."


def _group_comment(id_: str, group: GroupFacts | None) -> str:
    if group is None:
        return f"There is no group {id_}: the application is not running, and its offsets have expired."
    if group.type is GroupType.STREAMS:
        if group.state == "Unknown":
            return (
                "Its group uses the streams protocol; this user may not describe all topics of its topology."
            )
        members = counted(group.members, "member")
        return f"Its group uses the streams protocol and is in state {group.state} with {members}."
    return f"Its group is in state {group.state} with {counted(group.members, 'member')}."


class _FlowListDumper(DocumentDumper):
    """Writes lists on one line."""


_FlowListDumper.add_representer(
    list, lambda dumper, items: dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=True)
)
