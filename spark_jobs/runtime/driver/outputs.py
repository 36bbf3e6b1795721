"""Topics to write to that are not there: told, not refused, for brokers may make them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

import structlog

from infra.model.nodes import NodeTopology, SinkNode
from infra.model.problems import ProblemsError
from infra.model.topology import Application

_log = structlog.get_logger(__name__)
_DEAD_LETTERS = "errors.dead.letter.queue.topic.name"


class Topics(Protocol):
    def topic_ids(self, names: Sequence[str]) -> Mapping[str, str]:
        """As `infra.observe.ClusterReader`."""
        ...


def warn_of_missing(nodes: NodeTopology, application: Application, topics: Topics) -> None:
    """Log each of them. Whoever may not ask for them is told when they are written to."""
    names = sorted(set(written_topics(nodes, application)))
    try:
        there: Collection[str] = topics.topic_ids(names)
    except ProblemsError:
        return
    for name in names:
        if name not in there:
            _log.warning("topic to write to is not there", topic=name, unless_brokers_make_it="records fail")


def written_topics(nodes: NodeTopology, application: Application) -> Iterator[str]:
    """Yield the users' topics that the document names: those of sinks, and the one of dead letters."""
    internal = {topic.name for topic in nodes.repartition_topics}
    for node in nodes.nodes:
        if isinstance(node, SinkNode) and node.topic is not None and node.topic not in internal:
            yield node.topic
    if _DEAD_LETTERS in application.config:
        yield application.config[_DEAD_LETTERS]
