"""Groups that may belong to Kafka Streams applications, and those that certainly do."""

from collections.abc import Collection, Mapping
from enum import IntEnum

from headwater.model.cluster import GroupFacts, GroupType
from headwater.model.offset_metadata import is_client_group
from headwater.planner.evidence.names import internal_to

_ASSIGNOR = "stream"
"""`StreamsPartitionAssignor#name`: what every member of a classic group of Kafka Streams proposes."""
_CONSUMER_PROTOCOL_TYPES = ("", "consumer")
_OTHER_SYSTEMS = ("_confluent-ksql-",)
"""Prefixes of ids of systems that create and delete the topics themselves."""


class Certainty(IntEnum):
    """How certain it is that an id belongs to a Kafka Streams application."""

    POSSIBLE = 1
    CERTAIN = 2


def candidates(groups: Mapping[str, GroupFacts], named: Collection[str]) -> Mapping[str, Certainty]:
    """Return application id → certainty. `named` are ids from the user, with or without a group."""
    certainties = {id_: _certainty(group) for id_, group in groups.items()}
    found = {id_: certainty for id_, certainty in certainties.items() if certainty is not None}
    return found | dict.fromkeys(named, Certainty.CERTAIN)


def exclusion_text(group: GroupFacts) -> str:
    """Return a clause that explains why a group is not that of a Kafka Streams application."""
    if group.id.startswith(_OTHER_SYSTEMS):
        return f"group {group.id} belongs to ksqlDB, which manages its own topics"
    if is_client_group(group.id):
        return f"group {group.id} has only the record of the active client of `headwater run`"
    if group.type is GroupType.CONSUMER:
        return f"group {group.id} uses the consumer protocol, which Kafka Streams does not use"
    if group.protocol_type not in _CONSUMER_PROTOCOL_TYPES:
        return f"group {group.id} has the protocol type {group.protocol_type}"
    return f"group {group.id} uses the assignor {group.assignor}, which Kafka Streams does not use"


def _certainty(group: GroupFacts) -> Certainty | None:
    if group.id.startswith(_OTHER_SYSTEMS) or group.type is GroupType.CONSUMER:
        return None
    if is_client_group(group.id):
        return None
    if group.type is GroupType.STREAMS or group.assignor == _ASSIGNOR:
        return Certainty.CERTAIN
    if group.assignor or group.protocol_type not in _CONSUMER_PROTOCOL_TYPES:
        return None
    # Only the application itself reads its repartition topics with the group of its id.
    return Certainty.CERTAIN if internal_to(group.id, group.committed) else Certainty.POSSIBLE
