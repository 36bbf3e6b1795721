"""The recorded setup of the last finished `up`: it tells a first-ever start from data loss (KIP-698)."""

from collections.abc import Mapping

import attrs

from infra.model.acls import Acl


@attrs.frozen
class RecordedTopic:
    """A topic that was set up: `topic_id` is the cluster's, `partitions` the count then.

    `topic_id` is empty in a plan for a topic that the run creates (it is looked up afterwards), and in a
    record for a topic of a run that was interrupted before it could look: such a topic counts as ours, its
    absence as no loss.
    """

    name: str
    topic_id: str
    partitions: int
    is_sink: bool = False
    """A managed sink topic: it belongs to its readers too and is never deleted."""


@attrs.frozen
class SetupRecord:
    """One application's record.

    `initial_processors` is what linear hashing starts from (KIP-287); once known it never changes, 0 = not
    known yet.
    """

    application_id: str
    topics: Mapping[str, RecordedTopic]
    initial_processors: int = 0
    generated: frozenset[str] = frozenset()
    """Names that carried a generated index when recorded (for the renumbering hint)."""
    origins: Mapping[str, str] = attrs.field(factory=dict)
    """Generated name → from which user topics its records descend, as a digest; may lack names."""
    cluster_id: str = ""
    """The cluster on which it was set up; empty = not known."""
    retired: bool = False
    """The first of the two steps to deletion is done: without its document the internal topics go."""
    unfinished: bool = False
    """The first run was interrupted: what exists now was made by it, what is missing is still to be made."""
    acls: frozenset[Acl] = frozenset()
    """Those that the stack holds for the application."""
