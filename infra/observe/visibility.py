"""Whether topics that seem to lack do: to a user who may not see them they look alike."""

from collections.abc import Iterable

from infra.model.cluster import ClusterSnapshot
from infra.model.compiled import CompiledApplication
from infra.observe.reader import ClusterReader


def check_visible(
    reader: ClusterReader, snapshot: ClusterSnapshot, compiled: Iterable[CompiledApplication]
) -> None:
    """Ask by name for internal topics that are not in the snapshot, if there are any.

    Their names were not known before the counts were. Raises `ProblemsError` (NotAuthorized).
    """
    names = {topic.name for application in compiled for topic in application.internal_topics}
    if unseen := sorted(names - snapshot.topics.keys()):
        reader.topic_ids(unseen)
