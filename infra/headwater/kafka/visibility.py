"""Check that topics are missing: without permission to describe it, a topic looks missing, too."""

from collections.abc import Iterable

from headwater.kafka.reader import ClusterReader
from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication


def check_visible(
    reader: ClusterReader, snapshot: ClusterSnapshot, compiled: Iterable[CompiledApplication]
) -> None:
    """Request by name the internal topics that are not in the snapshot, if there are any.

    Their names are known only after the counts. Raises `ProblemsError` (NotAuthorized).
    """
    names = {topic.name for application in compiled for topic in application.internal_topics}
    if unseen := sorted(names - snapshot.topics.keys()):
        reader.topic_ids(unseen)
