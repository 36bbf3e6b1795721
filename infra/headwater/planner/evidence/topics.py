"""State the evidence for the owner of a topic, and derive a verdict."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property

import attrs

from headwater.model.client_record import client_group
from headwater.model.cluster import (
    ClusterEvidence,
    ClusterSnapshot,
    EvidenceRequest,
    EvidenceSource,
    GroupFacts,
    LiveTopic,
    UnreadCause,
    UnreadEvidence,
)
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import errors
from headwater.model.records import OwnershipRecord, SetupRecord
from headwater.model.topology import Lifecycle, name_beginnings
from headwater.planner.evidence.names import is_created_by_streams, is_internal_to
from headwater.planner.phrases import listed

_NOT_READ = ClusterEvidence(
    unread=(UnreadEvidence(source=EvidenceSource.GROUPS, cause=UnreadCause.NOT_REQUESTED),)
)


class Verdict(Enum):
    """Whose a topic is, from the point of view of one application.

    OWN: a record of this application contains it. LIKELY: Kafka Streams created it, and no other application
    may own it. RECORDED: another application's record contains it. USED: another client reads it. OTHER:
    another application may own it. SUSPECTED: only the name connects it with the application. UNKNOWN: what
    would decide it may not be read.
    """

    OWN = "own"
    LIKELY = "likely"
    RECORDED = "recorded"
    USED = "used"
    OTHER = "other"
    SUSPECTED = "suspected"
    UNKNOWN = "unknown"


@attrs.frozen(kw_only=True)
class TopicEvidence:
    """What is known about one topic, for the question whether `application` owns it.

    `recorded_by` are the records of other applications that contain it, `readers` phrases for other clients
    that read it. `others` are ids of other applications that may own it, with phrases; all internal topics of
    those in `known` are declared or recorded. `unread` is what could not be read.
    """

    topic: str
    application: str
    is_recorded: bool
    recorded_by: tuple[OwnershipRecord, ...]
    readers: tuple[str, ...]
    others: Mapping[str, str]
    known: frozenset[str]
    is_created_by_streams: bool
    is_read_by_own_group: bool
    is_subscribed_by_own_group: bool
    unread: tuple[UnreadEvidence, ...]

    @property
    def rivals(self) -> Mapping[str, str]:
        """Return others with a longer id, which have a better claim, if they may have unknown topics.

        They matter even if the application declares or has recorded the topic.
        """
        unknown = self.others.keys() - self.known
        return {id_: self.others[id_] for id_ in sorted(unknown) if len(id_) > len(self.application)}

    @property
    def contenders(self) -> Mapping[str, str]:
        """Return others that may own the topic if nothing but its name and settings is known of it.

        Among known applications, a left-over topic belongs to the longest id that its name begins with.
        """
        return {
            id_: text
            for id_, text in self.others.items()
            if len(id_) > len(self.application) or id_ not in self.known
        }

    @property
    def verdict(self) -> Verdict:
        if self.recorded_by:
            return Verdict.RECORDED
        if self.is_recorded:
            return Verdict.OWN
        if self.readers:
            return Verdict.USED
        if self.contenders and not self.is_read_by_own_group:
            return Verdict.OTHER
        if self.unread:
            return Verdict.UNKNOWN
        has_origin = self.is_created_by_streams or self.is_read_by_own_group
        return Verdict.LIKELY if has_origin else Verdict.SUSPECTED

    @property
    def is_proven(self) -> bool:
        """Return whether the evidence attributes the topic to the application."""
        return self.verdict in (Verdict.OWN, Verdict.LIKELY)

    @property
    def text(self) -> str:
        """Return the evidence in phrases, separated by semicolons."""
        return "; ".join(self._list_facts())

    def _list_facts(self) -> Iterator[str]:
        for record in self.recorded_by:
            yield f"recorded by stack {record.stack.name} for {record.application_id}"
        if self.is_recorded:
            yield f"recorded for {self.application}"
        if self.readers:
            yield f"read by {listed(self.readers)}"
        if self.contenders and not self.is_recorded:
            yield f"may belong to {listed(self.contenders.values())}"
        if self.is_read_by_own_group:
            yield f"read by group {self.application}"
        if self.unread:
            yield unread_text(self.unread)
        yield (
            "it has the settings or the generated name of an internal topic"
            if self.is_created_by_streams
            else "it does not have the settings of an internal topic"
        )


@attrs.frozen
class Evidence:
    """All evidence of one run. `records` are the setup records of the stack, by application id."""

    compiled: Sequence[CompiledApplication]
    snapshot: ClusterSnapshot
    records: Mapping[str, SetupRecord]

    def about_topic(self, application: str, topic: LiveTopic) -> TopicEvidence:
        """Return the evidence for a topic that exists, from the point of view of an application."""
        name = topic.name
        own = self._groups.get(application)
        records = [record for record in self._recorded.get(name, ()) if _contains_topic(record, topic)]
        recorded = self.records.get(application)
        entry = recorded.topics.get(name) if recorded else None
        return TopicEvidence(
            topic=name,
            application=application,
            is_recorded=(entry is not None and topic.may_have_id(entry.topic_id))
            or any(record.application_id == application for record in records),
            recorded_by=tuple(record for record in records if record.application_id != application),
            readers=tuple(self._readers(application, name)),
            others=dict(self._other_owners(application, name)),
            known=self._known,
            is_created_by_streams=is_created_by_streams(topic),
            is_read_by_own_group=own is not None and name in own.subscribed | own.committed,
            is_subscribed_by_own_group=own is not None and name in own.subscribed,
            unread=self._found.unread,
        )

    def is_running(self, id_: str) -> bool:
        """Return whether a group with this id has members, or may have some."""
        group = self._groups.get(id_)
        live = self.snapshot.groups.get(id_)
        if group is not None and group.state not in ("Empty", "Dead"):
            return True
        return live is not None and live.is_active

    def is_unused(self, id_: str) -> bool:
        """Return whether it is known that no application with this id is running or recorded elsewhere."""
        is_recorded = any(record.application_id == id_ for record in self._found.ownership)
        is_foreign = is_recorded and id_ not in self.records
        return not self._found.unread and not is_foreign and not self.is_running(id_)

    @cached_property
    def _found(self) -> ClusterEvidence:
        return self.snapshot.evidence or _NOT_READ

    @property
    def _groups(self) -> Mapping[str, GroupFacts]:
        return self._found.groups

    @cached_property
    def _recorded(self) -> Mapping[str, Sequence[OwnershipRecord]]:
        """Topic → the ownership records that contain its name."""
        recorded: defaultdict[str, list[OwnershipRecord]] = defaultdict(list)
        for record in self._found.ownership:
            for topic in record.topics:
                recorded[topic].append(record)
        return recorded

    @cached_property
    def _users(self) -> Mapping[str, Sequence[GroupFacts]]:
        """Topic → groups that subscribe to it or have committed offsets of it."""
        users: defaultdict[str, list[GroupFacts]] = defaultdict(list)
        for group in self._groups.values():
            for topic in group.subscribed | group.committed:
                users[topic].append(group)
        return users

    @cached_property
    def _declared_readers(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Topic → id and phrase of each application that declares to read it, in a document or a record."""
        readers: defaultdict[str, dict[str, str]] = defaultdict(dict)
        documents = {compiled.application.id for compiled in self.compiled}
        for record in self._found.ownership:
            is_current = not record.is_retired and record.application_id not in documents
            for topic in record.reads if is_current else ():
                readers[topic][record.application_id] = (
                    f"application {record.application_id} of stack {record.stack.name}"
                )
        for compiled in self.compiled:
            id_ = compiled.application.id
            if compiled.application.lifecycle is Lifecycle.RETIRED:
                continue
            for topic in read_topics(compiled):
                readers[topic][id_] = f"application {id_} ({compiled.application.at.file})"
        return {topic: tuple(found.items()) for topic, found in readers.items()}

    def _readers(self, application: str, topic: str) -> Iterator[str]:
        own = (application, client_group(application))
        yield from (group.text for group in self._users.get(topic, ()) if group.id not in own)
        yield from (text for id_, text in self._declared_readers.get(topic, ()) if id_ != application)

    def _other_owners(self, application: str, topic: str) -> Iterator[tuple[str, str]]:
        """Yield groups and applications, with phrases, whose id the name begins with."""
        for id_ in name_beginnings(topic):
            if id_ == application or not is_internal_to(id_, topic):
                continue
            group = self._groups.get(id_)
            live = self.snapshot.groups.get(id_)
            if group is not None:
                yield id_, group.text
            elif live is not None:
                yield id_, f"group {id_} ({live.state})"
            elif id_ in self._known:
                yield id_, f"application {id_}"

    @cached_property
    def _known(self) -> frozenset[str]:
        """Return the applications all of whose internal topics are known: no other topic is theirs."""
        decided = (each for each in self.compiled if not errors(each.problems) and not each.missing_sources)
        finished = (record for record in self._found.ownership if record.is_finished)
        return frozenset(
            (*(each.application.id for each in decided), *(record.application_id for record in finished))
        )


def unread_text(unread: Iterable[UnreadEvidence]) -> str:
    """Return a phrase for what could not be read, with the permissions that are missing."""
    return f"not readable: {listed(map(_unread_phrase, unread))}"


def _unread_phrase(unread: UnreadEvidence) -> str:
    reason = f" ({unread.permission})" if unread.permission else ""
    match unread.source:
        case EvidenceSource.GROUP:
            return f"group {unread.name}{reason}"
        case EvidenceSource.OWNERSHIP_RECORDS:
            return f"the ownership records{reason}"
        case EvidenceSource.OWNERSHIP_RECORD:
            return f"a record in {unread.name}"
        case EvidenceSource.GROUPS if unread.cause is UnreadCause.NO_COORDINATOR:
            return (
                "the groups of brokers that are stopped "
                "(`__consumer_offsets` has partitions without a leader)"
            )
        case EvidenceSource.GROUPS if unread.cause is UnreadCause.NOT_REQUESTED:
            return "consumer groups were not read"
        case EvidenceSource.GROUPS:
            return f"the groups of other clients{reason}"


def read_topics(compiled: CompiledApplication) -> Iterable[str]:
    """Return the topics of others that an application reads."""
    return {*compiled.external_sources, *compiled.global_topics}


def _contains_topic(record: OwnershipRecord, topic: LiveTopic) -> bool:
    """Whether a record contains the topic: not a topic that only has the same name."""
    return topic.name in record.topics and topic.may_have_id(record.topics[topic.name])


def evidence_request(
    compiled: Sequence[CompiledApplication],
    snapshot: ClusterSnapshot,
    records: Mapping[str, SetupRecord] | None,
    in_question: Collection[str] = (),
) -> EvidenceRequest:
    """Return what a plan must read about topics that exist, and that it would adopt or delete.

    `in_question` are further topics, any of whose readers matter. A topic is adopted on its settings. Without
    them, the group of the application must read it. A plan without a stack (`records` None) shows all topics
    as adopted: it asks only about those without such settings.
    """
    is_known = records is not None
    records = records or {}
    adopted = frozenset(_adopted_topics(compiled, records)) & snapshot.topics.keys()
    deleted = frozenset((*_deleted_topics(compiled, records), *in_question)) & snapshot.topics.keys()
    unproven = [name for name in adopted if not is_created_by_streams(snapshot.topics[name])]
    return EvidenceRequest(
        topics=(adopted if is_known else frozenset(unproven)) | deleted,
        offsets_of=None if deleted else frozenset(id_ for name in unproven for id_ in name_beginnings(name)),
        with_ownership=bool(deleted),
        with_ownership_policy=any(_is_deleted(record, compiled) for record in records.values()),
    )


def _adopted_topics(
    compiled: Sequence[CompiledApplication], records: Mapping[str, SetupRecord]
) -> Iterator[str]:
    for each in compiled:
        record = records.get(each.application.id)
        if each.application.lifecycle is Lifecycle.ACTIVE and not (record and record.unfinished):
            recorded = record.topics if record else {}
            yield from (topic.name for topic in each.internal_topics if topic.name not in recorded)


def _deleted_topics(
    compiled: Sequence[CompiledApplication], records: Mapping[str, SetupRecord]
) -> Iterator[str]:
    documents = {each.application.id: each.application for each in compiled}
    for application in documents.values():
        if application.lifecycle is Lifecycle.ACTIVE:
            yield from (*application.leftovers.retire, *application.leftovers.delete)
    for id_, record in records.items():
        document = documents.get(id_)
        is_ending = record.retired if document is None else document.lifecycle is Lifecycle.RETIRED
        if is_ending:
            yield from (topic.name for topic in record.topics.values() if not topic.is_sink)


def _is_deleted(record: SetupRecord, compiled: Sequence[CompiledApplication]) -> bool:
    """Whether the run deletes topics of a record, instead of preparing it."""
    documents = {each.application.id: each.application for each in compiled}
    document = documents.get(record.application_id)
    if document is None:
        return record.retired
    return any(topic.is_retired for topic in record.topics.values())
