"""The recorded setup: what the last finished `up` left behind. It is what tells a first-ever start from data loss (KIP-698)."""

from collections.abc import Mapping

import attrs


@attrs.frozen
class RecordedTopic:
    """A topic that was set up: `topic_id` is the cluster's, `partitions` the count then.

    In a plan `topic_id` is empty for a topic that the run creates: it is looked up afterwards.
    """

    name: str
    topic_id: str
    partitions: int
    is_sink: bool = False
    """A managed sink topic: it belongs to its readers too and is never deleted."""


@attrs.frozen
class SetupRecord:
    """One application's record. `initial_processors` is what linear hashing starts from (KIP-287): never changed later."""

    application_id: str
    topics: Mapping[str, RecordedTopic]
    initial_processors: int
    generated: frozenset[str] = frozenset()
    """Names that carried a generated index when recorded (for the renumbering hint)."""
    retired: bool = False
    """The first of the two steps to deletion is done: once the document is gone too, the internal topics are deleted."""
