"""Ownership records: which stack manages which application. All stacks of a cluster read them."""

from collections.abc import Mapping

import attrs

OWNERSHIP_TOPIC = "headwater-ownership"
"""The topic of the records: one partition, compacted."""


@attrs.frozen
class StackIdentity:
    """A stack. `id` is random and in the stack's state; it is empty before the first `pulumi up` with one.

    `name` is `organization/project/stack`. Stacks of different backends may have the same name.
    """

    id: str
    name: str

    def has_same_name(self, other: "StackIdentity") -> bool:
        """Return whether project and stack are the same; the organization may be unknown."""
        return self.name.split("/")[-2:] == other.name.split("/")[-2:]


@attrs.frozen(kw_only=True)
class OwnershipRecord:
    """What a stack manages of one application; `topics` is topic name → id (empty: not read yet).

    `is_finished`: the run that claimed the application has finished. `is_retired`: the topics are about to be
    deleted, so the record is valid as long as one of them exists. `reads` are the topics of others that the
    application reads. `retired_topics` are those of `topics` that the topology no longer has and that a
    document has retired: their deletion is prepared.
    """

    application_id: str
    stack: StackIdentity
    topics: Mapping[str, str] = attrs.field(factory=dict)
    is_finished: bool = True
    is_retired: bool = False
    reads: frozenset[str] = frozenset()
    retired_topics: frozenset[str] = frozenset()

    @property
    def key(self) -> tuple[str, str]:
        """Return what identifies the record: a newer record with the same key replaces it."""
        return self.stack.id, self.application_id


@attrs.frozen
class OwnershipChange:
    """Records to write, and the keys of records to delete."""

    written: tuple[OwnershipRecord, ...] = ()
    deleted: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.written or self.deleted)
