"""PURE. Which topics of a text are internal."""

from collections.abc import Iterator

from infra.compiler.described.names import FOREIGN_KEY_TOPIC, GENERATED_REPARTITION
from infra.compiler.described.structure import Structure
from infra.model.nodes import ProcessorNode, SinkNode, SourceNode
from infra.model.problems import Problem, ProblemCode, Severity

_SUFFIX = "-repartition"


def internal_topics(structure: Structure) -> tuple[str, ...]:
    """Topics that the text both writes and reads and that are named like internal ones."""
    return tuple(
        topic
        for topic in structure.sinks
        if topic in structure.readers and (topic.endswith(_SUFFIX) or FOREIGN_KEY_TOPIC.fullmatch(topic))
    )


def doubtful_topics(structure: Structure) -> Iterator[Problem]:
    """Topics taken for internal whose nodes are named as those of a user's topic would be, too."""
    for topic in internal_topics(structure):
        if not _is_certain(topic, structure):
            source = structure.readers[topic]
            yield Problem(
                code=ProblemCode.MISSING_DETAIL,
                summary=f"{topic} is taken for a repartition topic because of its name.",
                topic=topic,
                node=source.name,
                expected="a repartition topic of Kafka Streams",
                found="node names that a topic of yours would have as well",
                why=(
                    "A text does not say whether a topic is internal. If this one is yours, its name has no "
                    "application id in front and its partition count is what it is on the cluster."
                ),
                fix=(
                    "If the topic is yours, declare the topology by its operators instead of its description."
                ),
                location=source.at,
                severity=Severity.WARNING,
            )


def _is_certain(topic: str, structure: Structure) -> bool:
    if FOREIGN_KEY_TOPIC.fullmatch(topic) or GENERATED_REPARTITION.fullmatch(topic):
        return True
    source = structure.readers[topic]
    if source.name == f"{topic}-source" or len(source.topics) > 1:
        return True
    return any(
        _belongs(topic.removesuffix(_SUFFIX), sink, source, structure) for sink in structure.sinks[topic]
    )


def _belongs(prefix: str, sink: SinkNode, source: SourceNode, structure: Structure) -> bool:
    """`KTable#groupBy`: the topic is named after the selector, the aggregation or the aggregation's store."""
    if prefix in sink.parents or sink.name == f"{prefix}-sink":
        return True
    below = [structure.nodes[name] for name in structure.children.get(source.name, ())]
    return any(
        isinstance(node, ProcessorNode) and (node.name == prefix or prefix in node.stores) for node in below
    )
