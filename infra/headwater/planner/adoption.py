"""Recognize applications in a survey of a cluster: which topic belongs to which application id.

Kafka Streams names an internal topic `<application id>-<store or operator>-<suffix>`, and its group after the
application id. Both parts may contain hyphens, so a name alone does not show where the id ends. Groups do.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from enum import Enum

import attrs

from headwater.model.cluster import GroupFacts, LiveTopic, Survey
from headwater.model.streams_groups import StreamsGroup
from headwater.model.topology import Unknown, name_beginnings
from headwater.planner.evidence.names import (
    Certainty,
    exclusion_text,
    find_candidates,
    has_internal_name,
    internal_to,
    is_created_by_streams,
    is_internal_to,
)
from headwater.planner.phrases import listed


@attrs.frozen(kw_only=True)
class FoundApplication:
    """An application with its internal topics, sorted by name.

    `group` None = it no longer exists. `sources` are the topics that it reads, with their partition counts,
    `missing_sources` those that no longer exist. `prefix_ids` are ids of other applications that its id
    begins with, `ambiguities` are sentences about topics that may belong to another application.
    """

    id: str
    group: GroupFacts | None
    topics: tuple[LiveTopic, ...]
    sources: Mapping[str, int]
    missing_sources: tuple[str, ...] = ()
    streams_group: StreamsGroup | None = None
    """The group with its topology, if it has the streams protocol and could be described."""
    prefix_ids: tuple[str, ...] = ()
    ambiguities: tuple[str, ...] = ()

    @property
    def unknown(self) -> tuple[Unknown, ...]:
        """Return the open questions."""
        questions = {
            Unknown.SUBTOPOLOGIES: True,
            Unknown.SOURCES: not self.sources,
            Unknown.PROTOCOL: self.group is None,
        }
        return tuple(unknown for unknown, is_open in questions.items() if is_open)


class SkipReason(Enum):
    """Why a topic that is named like an internal topic was skipped."""

    NO_GROUP = "no group"
    """No group has the id of its application."""
    OTHER_GROUP = "other group"
    """The group of its application does not belong to Kafka Streams, or belongs to ksqlDB."""
    OTHER_SETTINGS = "other settings"
    """The application exists, but the topic does not have the settings that Kafka Streams sets."""


@attrs.frozen
class SkippedTopic:
    """A topic that is named like an internal topic and was skipped. `text` explains the reason."""

    topic: str
    reason: SkipReason
    text: str


@attrs.frozen
class Recognized:
    """Applications sorted by id, skipped topics by name. `stateless` are ids without internal topics."""

    applications: tuple[FoundApplication, ...]
    skipped: tuple[SkippedTopic, ...]
    stateless: tuple[str, ...]


_GENERATED = re.compile(r"(?P<id>.+?)-(?:KSTREAM|KTABLE|COGROUPKSTREAM)-[A-Z-]+-\d{10}\b.*", re.DOTALL)


def recognize_applications(
    survey: Survey, named: Collection[str] = (), confirmed: Collection[str] = ()
) -> Recognized:
    """Return the applications. `named` are ids of applications whose group no longer exists.

    An application gets only the topics that Kafka Streams certainly created: topics that its own group reads
    or has in its topology, topics with the settings of Kafka Streams or a generated name, and topics that the
    user `confirmed`.
    """
    known = find_candidates(survey.groups, named)
    owners: defaultdict[str, list[LiveTopic]] = defaultdict(list)
    ambiguities: defaultdict[str, list[str]] = defaultdict(list)
    skipped = []
    for topic in [topic for name, topic in sorted(survey.topics.items()) if has_internal_name(name)]:
        ids = _possible_owners(topic.name, known)
        owner = _find_owner(topic.name, ids, known, survey)
        is_certain = (
            topic.name in confirmed or is_created_by_streams(topic) or _has_topic(survey, owner, topic.name)
        )
        if owner is None or not is_certain:
            skipped.append(_explain_skip(topic.name, owner, known, survey.groups))
            continue
        owners[owner].append(topic)
        others = [id_ for id_ in ids if id_ != owner]
        if others and not _has_topic(survey, owner, topic.name):
            ambiguities[owner].append(f"{topic.name} could also belong to {listed(others)}.")
    applications = tuple(
        attrs.evolve(
            _build_application(id_, topics, survey),
            prefix_ids=tuple(sorted(other for other in owners if id_.startswith(f"{other}-"))),
            ambiguities=tuple(ambiguities[id_]),
        )
        for id_, topics in sorted(owners.items())
    )
    stateless = sorted(
        id_ for id_, certainty in known.items() if certainty is Certainty.CERTAIN and id_ not in owners
    )
    return Recognized(applications, tuple(skipped), tuple(stateless))


def _possible_owners(topic: str, known: Collection[str]) -> list[str]:
    """Return the known ids that the name may begin with."""
    return [id_ for id_ in name_beginnings(topic) if id_ in known and is_internal_to(id_, topic)]


def _find_owner(
    topic: str, ids: Collection[str], known: Mapping[str, Certainty], survey: Survey
) -> str | None:
    """Return the id that a topic belongs to: one whose group has it, else the most certain or longest."""
    return max(
        ids,
        key=lambda id_: (_has_topic(survey, id_, topic), known[id_], len(id_)),
        default=None,
    )


def _has_topic(survey: Survey, id_: str | None, topic: str) -> bool:
    """Return whether the group of an application reads a topic, or has it in its topology."""
    streams_group = survey.streams_groups.get(id_ or "")
    if streams_group is not None and streams_group.topology_epoch is not None:
        return topic in streams_group.internal_topics  # it may read a user's topic that is named like them
    group = survey.groups.get(id_ or "")
    return group is not None and topic in group.read


def _explain_skip(
    topic: str, owner: str | None, known: Collection[str], groups: Mapping[str, GroupFacts]
) -> SkippedTopic:
    if owner is not None:
        text = f"it does not have the settings of Kafka Streams (since 2.5), so it may not belong to {owner}"
        return SkippedTopic(topic, SkipReason.OTHER_SETTINGS, text)
    others = [id_ for id_ in name_beginnings(topic) if id_ in groups and id_ not in known]
    if others:
        return SkippedTopic(topic, SkipReason.OTHER_GROUP, exclusion_text(groups[max(others, key=len)]))
    generated = _GENERATED.fullmatch(topic)
    hint = f"; according to its name, it belongs to {generated['id']}" if generated else ""
    return SkippedTopic(topic, SkipReason.NO_GROUP, f"no group has the id of its application{hint}")


def _build_application(id_: str, topics: list[LiveTopic], survey: Survey) -> FoundApplication:
    group = survey.groups.get(id_)
    streams_group = survey.streams_groups.get(id_)
    if streams_group is not None and streams_group.topology_epoch is not None:
        read = streams_group.sources
    else:
        read = group.read - internal_to(id_, group.read) if group else frozenset()
    return FoundApplication(
        id=id_,
        group=group,
        topics=tuple(topics),
        sources={name: survey.topics[name].partitions for name in sorted(read & survey.topics.keys())},
        missing_sources=tuple(sorted(read - survey.topics.keys())),
        streams_group=streams_group,
    )
