"""The admin requests that list all groups of a cluster."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any
from warnings import catch_warnings, simplefilter

import attrs
from confluent_kafka import ConsumerGroupTopicPartitions, ConsumerGroupType, KafkaException

from headwater.kafka.admin import Admin
from headwater.kafka.pending_requests import PendingRequests
from headwater.model.evidence import GroupType
from headwater.model.problems import ProblemsError

_TYPES = {ConsumerGroupType.CONSUMER: GroupType.CONSUMER}


@attrs.frozen
class ListedGroup:
    """A group of the list; `members` are the metadata that each member sent when it joined."""

    id: str
    type: GroupType
    state: str
    protocol_type: str
    assignor: str
    members: tuple[bytes, ...]


class GroupAdmin(Admin):
    """An admin client that lists groups. Raises as `Admin` does."""

    def listed_groups(self) -> Sequence[ListedGroup]:
        """Return all groups that the user may describe, by two lists with two requests per broker each."""
        try:
            types = self._group_types()
            return [_listed(group, types) for group in self._described_groups()]
        except KafkaException:
            raise ProblemsError([self._unreachable("list the groups")]) from None

    def request_committed(self, ids: Sequence[str]) -> PendingRequests[str, ConsumerGroupTopicPartitions]:
        """Request the committed offsets of groups, one request per group."""

        def send(chunk: Sequence[str]) -> dict[str, Future[ConsumerGroupTopicPartitions]]:
            return {
                id_: self._client.list_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(id_)], request_timeout=self._timeout
                )[id_]
                for id_ in chunk
            }

        return self._request("read the committed offsets of groups", ids, send)

    def _described_groups(self) -> Sequence[Any]:
        self.requests += 1
        with catch_warnings():
            simplefilter("ignore", DeprecationWarning)  # its successor hides the subscriptions of members
            return self._client.list_groups(timeout=self._timeout)

    def _group_types(self) -> Mapping[str, ConsumerGroupType]:
        self.requests += 1
        listing = self._awaited(
            self._client.list_consumer_groups(request_timeout=self._timeout), "list the groups"
        )
        return {group.group_id: group.type for group in listing.valid}


def _listed(group: Any, types: Mapping[str, ConsumerGroupType]) -> ListedGroup:  # noqa: ANN401 - untyped there
    """Combine both lists: the old one describes classic groups only, the new one omits streams groups."""
    is_hidden = group.state == "Dead" and group.id not in types
    own = GroupType.STREAMS if is_hidden else GroupType.CLASSIC
    return ListedGroup(
        id=str(group.id),
        type=_TYPES.get(types[group.id], own) if group.id in types else own,
        state=str(group.state),
        protocol_type=str(group.protocol_type or ""),
        assignor=str(group.protocol or ""),
        members=tuple(bytes(member.metadata or b"") for member in group.members),
    )
