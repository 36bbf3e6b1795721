"""The ownership records of a cluster as one stack sees them."""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from headwater.model.cluster import ClusterSnapshot
from headwater.model.records import OwnershipRecord, StackIdentity
from headwater.model.untrusted import UnreadRecord


@attrs.frozen
class Conflict:
    """Another stack records the application (`is_same_application`), or `topics` of it."""

    application_id: str
    record: OwnershipRecord
    topics: tuple[str, ...]

    @property
    def is_same_application(self) -> bool:
        return self.record.application_id == self.application_id


@attrs.frozen
class Ownership:
    """Valid records: `own` by application id, and `foreign` ones of other stacks.

    `applications` are the ids that the stack declares or has recorded. `expired` are records of retired
    applications without topics. `outdated` are keys to delete: expired ones, and own ones of a run that was
    killed before it wrote the state, so the state does not have their id.
    """

    stack: StackIdentity
    applications: frozenset[str]
    own: Mapping[str, OwnershipRecord]
    foreign: tuple[OwnershipRecord, ...]
    outdated: tuple[tuple[str, str], ...] = ()
    expired: tuple[OwnershipRecord, ...] = ()
    unread: tuple[UnreadRecord, ...] = ()
    """Records that cannot be used: records of other stacks may be among them."""

    @classmethod
    def from_records(
        cls,
        records: Sequence[OwnershipRecord],
        snapshot: ClusterSnapshot,
        stack: StackIdentity,
        applications: frozenset[str],
    ) -> "Ownership":
        """Divide the records of the cluster into own, foreign, outdated and expired ones."""
        own = [record for record in records if _is_own(record, stack, applications)]
        # A record with the id of the stack comes last, so it wins.
        own.sort(key=lambda record: record.stack.id == stack.id)
        foreign = [record for record in records if not _is_own(record, stack, applications)]
        expired = tuple(record for record in foreign if not _is_valid(record, snapshot))
        return cls(
            stack=stack,
            applications=applications,
            own={record.application_id: record for record in own},
            foreign=tuple(record for record in foreign if record not in expired),
            outdated=(
                *(record.key for record in own if record.stack.id != stack.id),
                *(record.key for record in expired if record.stack.has_same_name(stack)),
            ),
            expired=expired,
        )

    def with_foreign_records(self, records: Sequence[OwnershipRecord]) -> "Ownership":
        """Return the same, with the foreign records among `records`: they were read again."""
        foreign = (record for record in records if not _is_own(record, self.stack, self.applications))
        return attrs.evolve(self, foreign=tuple(record for record in foreign if record not in self.expired))

    def find_conflicts(self, application_id: str, topics: Sequence[str]) -> Iterator[Conflict]:
        """Yield a conflict for each foreign record of the application, or of one of the topics."""
        for record in self.foreign:
            common = tuple(sorted(record.topics.keys() & set(topics)))
            if common or record.application_id == application_id:
                yield Conflict(application_id, record, common)


def _is_own(record: OwnershipRecord, stack: StackIdentity, applications: frozenset[str]) -> bool:
    # A state that was copied to another stack has the same id; a renamed stack has it, too.
    if not record.stack.has_same_name(stack):
        return False
    # Another stack with the same name may run at this moment, with applications of its own.
    is_left_by_a_killed_run = not record.is_finished and record.application_id in applications
    return record.stack.id == stack.id or is_left_by_a_killed_run


def _is_valid(record: OwnershipRecord, snapshot: ClusterSnapshot) -> bool:
    """Whether a record holds: the record of a retired application ends with the last of its topics.

    The ids of topics that this stack does not use are not read. Such a topic is taken as the recorded one.
    """
    live = snapshot.topics
    return not record.is_retired or any(
        name in live and live[name].may_have_id(id_) for name, id_ in record.topics.items()
    )
