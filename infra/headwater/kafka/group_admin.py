"""The requests about groups: lists of all groups of a cluster, their descriptions and committed offsets."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial

import attrs
from confluent_kafka import KafkaError

from headwater.kafka.admin import Admin
from headwater.kafka.group_client import Groups
from headwater.kafka.group_messages import DEAD, GroupDescription, GroupListing
from headwater.kafka.kafka_errors import unexpected_error
from headwater.kafka.pending_requests import in_background
from headwater.model.cluster import GroupType
from headwater.model.problems import ProblemsError
from headwater.model.streams_groups import StreamsGroup


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
    """An admin client that lists and describes groups. Raises as `Admin` does."""

    def groups(self, ids: Sequence[str], *, with_operations: bool = False) -> Groups:
        """Return consumer groups, optionally with the operations that the user may perform on them.

        Waits for a coordinator that is loading. This and all other requests to coordinators are not sent by
        librdkafka (ADR 37).
        """
        self.requests += 1
        return self._describe_groups_at_brokers(ids, with_operations=with_operations)

    def request_groups(self, ids: Sequence[str]) -> Future[Groups]:
        """Request consumer groups as `groups` does; awaiting them raises `ProblemsError`.

        Groups whose coordinators are not available have the error COORDINATOR_NOT_AVAILABLE.
        """
        self.requests += 1
        return in_background(partial(self._describe_groups_at_brokers, ids, tolerates_unavailable=True))

    def _describe_groups_at_brokers(self, ids: Sequence[str], **options: bool) -> Groups:
        return self._at_brokers(_describe_groups(ids), lambda client: client.describe(ids, **options))

    def streams_groups(
        self, ids: Sequence[str], *, with_nodes: bool = False
    ) -> Mapping[str, StreamsGroup | KafkaError]:
        """Return groups of the streams protocol, with their topologies."""
        self.requests += 1
        return self._at_brokers(
            _describe_groups(ids), lambda client: client.streams_groups(ids, with_nodes=with_nodes)
        )

    def existing_groups(self, ids: Sequence[str]) -> frozenset[str]:
        """Return which groups exist, of any type; the description of a streams group says `Dead`."""
        listing = self._list_groups("find", f"group {ids[0]}" if len(ids) == 1 else f"{len(ids)} groups")
        return frozenset(group.id for group in listing) & frozenset(ids)

    def listed_groups(self) -> Sequence[ListedGroup]:
        """Return all groups that the user may describe, classic ones with their members."""
        listing = self._list_groups()
        classic = [group.id for group in listing if group.type is GroupType.CLASSIC]
        described = self.groups(classic) if classic else {}
        return [_listed_group(group, described.get(group.id)) for group in listing]

    def group_state(self, id_: str) -> str:
        """Return the state of one group, of any protocol: `Stable`, `Empty`, …; `Dead` = there is none."""
        return next((group.state for group in self._list_groups() if group.id == id_), DEAD)

    def _list_groups(self, verb: str = "list", what: str = "the groups") -> Sequence[GroupListing]:
        self.requests += 1
        listing = self._at_brokers(f"{verb} {what}", lambda client: client.list_groups())
        if isinstance(listing, KafkaError):
            raise ProblemsError([unexpected_error(listing, verb, what)])
        return listing

    def committed_topics(self, ids: Sequence[str]) -> Mapping[str, frozenset[str] | KafkaError]:
        """Return group → the topics with committed offsets."""
        if not ids:
            return {}
        self.requests += 1
        return self._at_brokers(
            "read the committed offsets of groups", lambda client: client.committed_topics(ids)
        )


def _describe_groups(groups: Sequence[str]) -> str:
    return f"describe group {groups[0]}" if len(groups) == 1 else f"describe {len(groups)} groups"


def _listed_group(group: GroupListing, described: GroupDescription | KafkaError | None) -> ListedGroup:
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
