"""Recognize applications in a survey of a cluster: which topic belongs to which application id.

Kafka Streams names an internal topic `<application id>-<store or operator>-<suffix>`, and its group after the
application id. Both parts may contain hyphens, so a name alone does not show where the id ends. Groups do.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import attrs

from infra.model.cluster import LiveTopic
from infra.model.survey import GroupFacts, Survey
from infra.planner.adoption.candidates import (
    Certainty,
    candidates,
    exclusion_text,
    internal_to,
    is_internal_to,
)
from infra.planner.adoption.findings import FoundApplication, Recognized, SkippedTopic, SkipReason
from infra.planner.drift.orphans import has_internal_name
from infra.planner.phrases import listed

INTERNAL_NAMES = (
    r".+-(?:changelog|repartition|subscription-registration-topic|subscription-response-topic)",
    r".+-KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-\d+-topic",
)
"""Patterns of internal topic names: topics that a survey reads in detail."""
_SIGNATURE = frozenset({"cleanup.policy", "message.timestamp.type"})
"""Settings that Kafka Streams (since 2.5) sets on each internal topic, and users rarely do."""
_NUMBERED = re.compile(r"-(?:(?:KSTREAM|KTABLE|COGROUPKSTREAM)-[A-Z-]+|STATE-STORE)-\d{10}\b")
"""What generated names contain, including those of stores of tables."""
_GENERATED = re.compile(r"(?P<id>.+?)-(?:KSTREAM|KTABLE|COGROUPKSTREAM)-[A-Z-]+-\d{10}\b.*", re.DOTALL)


def recognize(survey: Survey, named: Collection[str] = (), confirmed: Collection[str] = ()) -> Recognized:
    """Return the applications. `named` are ids of applications whose group no longer exists.

    An application gets only the topics that Kafka Streams certainly created: those that its own group reads,
    those with the settings of Kafka Streams or a generated name, and those that the user `confirmed`.
    """
    known = candidates(survey.groups, named)
    owners: defaultdict[str, list[LiveTopic]] = defaultdict(list)
    ambiguities: defaultdict[str, list[str]] = defaultdict(list)
    skipped = []
    for topic in _with_internal_names(survey):
        ids = _possible(topic.name, known)
        owner = _owner(topic.name, ids, known, survey.groups)
        is_certain = topic.name in confirmed or _is_created_by_streams(topic, survey.groups.get(owner or ""))
        if owner is None or not is_certain:
            skipped.append(_skipped(topic.name, owner, known, survey.groups))
            continue
        owners[owner].append(topic)
        others = [id_ for id_ in ids if id_ != owner]
        if others and not _reads(survey.groups.get(owner), topic.name):
            ambiguities[owner].append(f"{topic.name} could also belong to {listed(others)}.")
    applications = tuple(
        attrs.evolve(
            _application(id_, topics, survey),
            prefix_ids=tuple(sorted(other for other in owners if id_.startswith(f"{other}-"))),
            ambiguities=tuple(ambiguities[id_]),
        )
        for id_, topics in sorted(owners.items())
    )
    stateless = sorted(
        id_ for id_, certainty in known.items() if certainty is Certainty.CERTAIN and id_ not in owners
    )
    return Recognized(applications, tuple(skipped), tuple(stateless))


def _with_internal_names(survey: Survey) -> Iterator[LiveTopic]:
    return (topic for name, topic in sorted(survey.topics.items()) if has_internal_name(name))


def _possible(topic: str, known: Collection[str]) -> list[str]:
    """Return the known ids that the name may begin with."""
    beginnings = (topic[:end] for end in _hyphens(topic))
    return [id_ for id_ in beginnings if id_ in known and is_internal_to(id_, topic)]


def _owner(
    topic: str, ids: Collection[str], known: Mapping[str, Certainty], groups: Mapping[str, GroupFacts]
) -> str | None:
    """Return the id that a topic belongs to: one whose group reads it, else the most certain or longest."""
    return max(
        ids,
        key=lambda id_: (_reads(groups.get(id_), topic), known[id_], len(id_)),
        default=None,
    )


def _hyphens(text: str) -> Iterator[int]:
    return (index for index, character in enumerate(text) if character == "-" and index)


def _is_created_by_streams(topic: LiveTopic, group: GroupFacts | None) -> bool:
    is_generated = _NUMBERED.search(topic.name) is not None
    return is_generated or topic.config.keys() >= _SIGNATURE or _reads(group, topic.name)


def _reads(group: GroupFacts | None, topic: str) -> bool:
    return group is not None and topic in group.read


def _skipped(
    topic: str, owner: str | None, known: Collection[str], groups: Mapping[str, GroupFacts]
) -> SkippedTopic:
    if owner is not None:
        text = f"it does not have the settings of Kafka Streams (since 2.5), so it may not belong to {owner}"
        return SkippedTopic(topic, SkipReason.OTHER_SETTINGS, text)
    others = [topic[:end] for end in _hyphens(topic) if topic[:end] in groups and topic[:end] not in known]
    if others:
        return SkippedTopic(topic, SkipReason.OTHER_GROUP, exclusion_text(groups[max(others, key=len)]))
    generated = _GENERATED.fullmatch(topic)
    hint = f"; according to its name, it belongs to {generated['id']}" if generated else ""
    return SkippedTopic(topic, SkipReason.NO_GROUP, f"no group has the id of its application{hint}")


def _application(id_: str, topics: list[LiveTopic], survey: Survey) -> FoundApplication:
    group = survey.groups.get(id_)
    read = group.read - internal_to(id_, group.read) if group else frozenset()
    return FoundApplication(
        id=id_,
        group=group,
        topics=tuple(topics),
        sources={name: survey.topics[name].partitions for name in sorted(read & survey.topics.keys())},
        missing_sources=tuple(sorted(read - survey.topics.keys())),
    )
