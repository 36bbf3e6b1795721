"""Which groups may be those of Kafka Streams applications, and which certainly are."""

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum

from infra.model.survey import GroupFacts, GroupType
from infra.planner.drift.orphans import looks_internal

_ASSIGNOR = "stream"
"""`StreamsPartitionAssignor#name`: what every member of a classic group of Kafka Streams proposes."""
_READING = ("", "consumer")
_FK_JOIN = "KTABLE-FK-JOIN-SUBSCRIPTION-"
_MANAGED_ELSEWHERE = ("_confluent-ksql-",)
"""Beginnings of ids that a system gives which makes and deletes the topics itself."""


class Certainty(IntEnum):
    """Whether an application id is one of Kafka Streams."""

    POSSIBLE = 1
    CERTAIN = 2


def candidates(groups: Mapping[str, GroupFacts], named: Collection[str]) -> Mapping[str, Certainty]:
    """Application id → how sure it is. `named` are ids that somebody vouches for, with or without a group."""
    judged = {id_: _judged(group) for id_, group in groups.items()}
    found = {id_: certainty for id_, certainty in judged.items() if certainty is not None}
    return found | dict.fromkeys(named, Certainty.CERTAIN)


def why_not(group: GroupFacts) -> str:
    """Say why a group is none of Kafka Streams, or one to leave alone."""
    if group.id.startswith(_MANAGED_ELSEWHERE):
        return f"group {group.id} is ksqlDB's, which looks after its topics itself"
    if group.type is GroupType.CONSUMER:
        return f"group {group.id} is one of the consumer protocol, which Kafka Streams does not speak"
    if group.protocol_type not in _READING:
        return f"group {group.id} is one of {group.protocol_type}"
    return f"group {group.id} assigns partitions by {group.assignor}, which Kafka Streams does not"


def internal_to(id_: str, topics: Iterable[str]) -> frozenset[str]:
    """The names among `topics` that an application of this id could have given."""
    return frozenset(topic for topic in topics if is_internal_to(id_, topic))


def is_internal_to(id_: str, topic: str) -> bool:
    """Whether the name is the id, a hyphen, the name of something, and an ending of internal topics."""
    rest = topic.removeprefix(f"{id_}-")
    return rest != topic and (looks_internal(rest) or (rest.startswith(_FK_JOIN) and looks_internal(topic)))


def _judged(group: GroupFacts) -> Certainty | None:
    if group.id.startswith(_MANAGED_ELSEWHERE) or group.type is GroupType.CONSUMER:
        return None
    if group.type is GroupType.STREAMS or group.assignor == _ASSIGNOR:
        return Certainty.CERTAIN
    if group.assignor or group.protocol_type not in _READING:
        return None
    # Nobody but the application itself reads its repartition topics in the group of its id.
    return Certainty.CERTAIN if internal_to(group.id, group.committed) else Certainty.POSSIBLE
