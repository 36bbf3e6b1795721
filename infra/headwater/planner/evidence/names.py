"""Names and settings of internal topics: what Kafka Streams gives to the topics that it creates.

Kafka Streams names an internal topic `<application id>-<store or operator>-<suffix>`. Both parts may contain
hyphens, so a name alone shows neither where the id ends nor that Kafka Streams created the topic.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum

from headwater.compiler.streams_config import StreamsConfig
from headwater.model.client_record import is_client_group
from headwater.model.cluster import GroupFacts, GroupType, LiveTopic
from headwater.model.compiled import CompiledApplication

INTERNAL_NAMES = (
    r".+-(?:changelog|repartition|subscription-registration-topic|subscription-response-topic)",
    r".+-KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-\d+-topic",
)
"""Patterns of internal topic names: topics that a survey reads in detail."""
_SUFFIXES = (
    "-changelog",
    "-repartition",
    "-subscription-registration-topic",
    "-subscription-response-topic",
)
_FK_JOIN = "KTABLE-FK-JOIN-SUBSCRIPTION-"
_FOREIGN_KEY = re.compile(rf".+-{_FK_JOIN}(REGISTRATION|RESPONSE)-\d+-topic", re.DOTALL)
_SIGNATURE = frozenset({"cleanup.policy", "message.timestamp.type"})
"""Settings that Kafka Streams (since 2.5) and Headwater set on each internal topic, and users rarely do."""
_NUMBERED = re.compile(r"-(?:(?:KSTREAM|KTABLE|COGROUPKSTREAM)-[A-Z-]+|STATE-STORE)-\d{10}\b")
"""What generated names contain, including names of stores of tables."""


def has_internal_name(name: str) -> bool:
    """Return whether the name ends as `StreamsResetter#matchesInternalTopicFormat` requires."""
    return name.endswith(_SUFFIXES) or _FOREIGN_KEY.fullmatch(name) is not None


def is_internal_to(id_: str, topic: str) -> bool:
    """Return whether the name is the id, a hyphen, a name, and a suffix of internal topics."""
    rest = topic.removeprefix(f"{id_}-")
    return rest != topic and (
        has_internal_name(rest) or (rest.startswith(_FK_JOIN) and has_internal_name(topic))
    )


def internal_to(id_: str, topics: Iterable[str]) -> frozenset[str]:
    """Return the names among `topics` that an application with this id may have created."""
    return frozenset(topic for topic in topics if is_internal_to(id_, topic))


def internal_prefix(compiled: CompiledApplication) -> str:
    """Return the prefix of the names of all internal topics."""
    return f"{StreamsConfig.from_application(compiled.application).topic_prefix or compiled.application.id}-"


def is_created_by_streams(topic: LiveTopic) -> bool:
    """Return whether a generated name or the settings show that Kafka Streams created the topic."""
    return _NUMBERED.search(topic.name) is not None or topic.config.keys() >= _SIGNATURE


STREAMS_ASSIGNOR = "stream"
"""`StreamsPartitionAssignor#name`: what every member of a classic group of Kafka Streams proposes."""
_CONSUMER_PROTOCOL_TYPES = ("", "consumer")
_OTHER_SYSTEMS = ("_confluent-ksql-",)
"""Prefixes of ids of systems that create and delete the topics themselves."""


class Certainty(IntEnum):
    """How certain it is that an id belongs to a Kafka Streams application."""

    POSSIBLE = 1
    CERTAIN = 2


def find_candidates(groups: Mapping[str, GroupFacts], named: Collection[str]) -> Mapping[str, Certainty]:
    """Return application id → certainty. `named` are ids from the user, with or without a group."""
    certainties = {id_: _certainty_of(group) for id_, group in groups.items()}
    found = {id_: certainty for id_, certainty in certainties.items() if certainty is not None}
    return found | dict.fromkeys(named, Certainty.CERTAIN)


def exclusion_text(group: GroupFacts) -> str:
    """Return a clause that explains why a group does not belong to a Kafka Streams application."""
    if group.id.startswith(_OTHER_SYSTEMS):
        return f"group {group.id} belongs to ksqlDB, which manages its own topics"
    if is_client_group(group.id):
        return f"group {group.id} has only the record of the active client of `headwater run`"
    if group.type is GroupType.CONSUMER:
        return f"group {group.id} uses the consumer protocol, which Kafka Streams does not use"
    if group.protocol_type not in _CONSUMER_PROTOCOL_TYPES:
        return f"group {group.id} has the protocol type {group.protocol_type}"
    return f"group {group.id} uses the assignor {group.assignor}, which Kafka Streams does not use"


def _certainty_of(group: GroupFacts) -> Certainty | None:
    if group.id.startswith(_OTHER_SYSTEMS) or group.type is GroupType.CONSUMER:
        return None
    if is_client_group(group.id):
        return None
    if group.type is GroupType.STREAMS or group.assignor == STREAMS_ASSIGNOR:
        return Certainty.CERTAIN
    if group.assignor or group.protocol_type not in _CONSUMER_PROTOCOL_TYPES:
        return None
    # Only the application itself reads its repartition topics with the group of its id.
    return Certainty.CERTAIN if internal_to(group.id, group.committed) else Certainty.POSSIBLE
