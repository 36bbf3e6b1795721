"""Names and settings of internal topics: what Kafka Streams gives to the topics that it creates.

Kafka Streams names an internal topic `<application id>-<store or operator>-<suffix>`. Both parts may contain
hyphens, so a name alone shows neither where the id ends nor that Kafka Streams created the topic.
"""

import re
from collections.abc import Iterable, Iterator

from headwater.model.cluster import LiveTopic

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
"""What generated names contain, including those of stores of tables."""


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


def beginnings(name: str) -> Iterator[str]:
    """Yield each part of a name that ends before a hyphen, the shortest first."""
    return (name[:index] for index, character in enumerate(name) if character == "-" and index)


def is_created_by_streams(topic: LiveTopic) -> bool:
    """Return whether a generated name or the settings show that Kafka Streams created the topic."""
    return _NUMBERED.search(topic.name) is not None or topic.config.keys() >= _SIGNATURE
