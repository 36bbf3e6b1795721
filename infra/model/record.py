"""The recorded setup: what the last finished `up` left behind. It is what tells a first-ever start from data loss (KIP-698)."""

from collections.abc import Mapping

import attrs


@attrs.frozen
class RecordedTopic:
    """An internal topic that was set up: `topic_id` is the cluster's, `partitions` the count then."""

    name: str
    topic_id: str
    partitions: int


@attrs.frozen
class SetupRecord:
    """One application's record. `initial_processors` is what linear hashing starts from (KIP-287): never changed later."""

    application_id: str
    topics: Mapping[str, RecordedTopic]
    initial_processors: int
    generated: frozenset[str] = frozenset()
    """Names that carried a generated index when recorded (for the renumbering hint)."""
