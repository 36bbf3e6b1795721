"""The requests that list all groups of a cluster."""

from collections.abc import Mapping, Sequence

import attrs
from confluent_kafka import KafkaError

from headwater.kafka.admin import Admin
from headwater.kafka.group_messages import DEAD, GroupDescription, GroupListing
from headwater.kafka.kafka_errors import unexpected
from headwater.model.cluster import GroupType
from headwater.model.problems import ProblemsError


@attrs.frozen
class ListedGroup:
    """A group of the list; `subscribed` are the topics that its members subscribe to."""

    id: str
    type: GroupType
    state: str
    protocol_type: str
    assignor: str
    members: int
    subscribed: frozenset[str]


class GroupAdmin(Admin):
    """An admin client that lists groups. Raises as `Admin` does."""

    def listed_groups(self) -> Sequence[ListedGroup]:
        """Return all groups that the user may describe, classic ones with their members."""
        self.requests += 1
        listing = self._at_brokers("list the groups", lambda client: client.listing())
        if isinstance(listing, KafkaError):
            raise ProblemsError([unexpected(listing, "list", "the groups")])
        classic = [group.id for group in listing if group.type is GroupType.CLASSIC]
        described = self.groups(classic) if classic else {}
        return [_listed(group, described.get(group.id)) for group in listing]

    def group_state(self, id_: str) -> str:
        """Return the state of one group, of any protocol: `Stable`, `Empty`, …; `Dead` = there is none."""
        self.requests += 1
        listing = self._at_brokers("list the groups", lambda client: client.listing())
        if isinstance(listing, KafkaError):
            raise ProblemsError([unexpected(listing, "list", "the groups")])
        return next((group.state for group in listing if group.id == id_), DEAD)

    def committed_topics(self, ids: Sequence[str]) -> Mapping[str, frozenset[str] | KafkaError]:
        """Return group → the topics with committed offsets."""
        if not ids:
            return {}
        self.requests += 1
        return self._at_brokers("read the committed offsets of groups", lambda client: client.committed(ids))


def _listed(group: GroupListing, described: GroupDescription | KafkaError | None) -> ListedGroup:
    """Combine the list with the description; a group may have ended since it was listed."""
    if not isinstance(described, GroupDescription) or described.state == DEAD:
        described = GroupDescription(id=group.id, state=group.state, protocol_type=group.protocol_type)
    return ListedGroup(
        id=group.id,
        type=group.type,
        state=described.state,
        protocol_type=described.protocol_type,
        assignor=described.assignor,
        members=len(described.members),
        subscribed=frozenset().union(*(member.subscribed for member in described.members)),
    )
