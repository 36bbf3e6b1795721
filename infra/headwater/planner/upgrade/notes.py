"""What to know about an upgrade that does not follow from comparing two topologies."""

import re
from collections.abc import Callable, Iterator, Mapping

from headwater.compiler.described.names import GENERATED, WINDOWED_NODE
from headwater.compiler.streams_config import MERGE_REPARTITIONS, StreamsConfig
from headwater.compiler.version_differences import (
    DIFFERENCES,
    EXPLICIT_NAMING,
    FIRST_KEY_CHANGE_FOUND,
    GLOBAL_STORE_NOT_LOGGED,
    JOIN_CHANGELOGS_DELETED,
    JOIN_STORES_WITH_HEADERS,
    NO_OLD_GUARANTEES,
    NO_UPGRADE_FROM_2_3,
    OFFSET_RESETS,
    OLDER_DIFFERENCES,
    PROCESS_FIX,
    READ_ONLY_STORES,
    SESSION_WITHOUT_GAP,
    STORE_ADDED_AGAIN_STAYS_CONNECTED,
    STORES_OF_SUPPLIERS_FIRST,
    STREAMS_PROTOCOL,
    TOPIC_READ_TWICE,
    UNNAMED_GLOBAL_STORE_FAILS,
    Difference,
)
from headwater.model.nodes import NodeTopology, ProcessorNode, SinkNode, SourceNode
from headwater.model.topology import Application
from headwater.model.versions import KafkaStreamsVersion

_FLAG = "__enable.process.processValue.fix__"
_FOUR = 4
_NEW_SUBSCRIPTIONS = (3, 4)
_LAST_OLD_SUBSCRIPTIONS = "3.3"
_SHOWN = (
    READ_ONLY_STORES,  # a new call
    *(OFFSET_RESETS, NO_OLD_GUARANTEES, STREAMS_PROTOCOL, EXPLICIT_NAMING, NO_UPGRADE_FROM_2_3),
    *(GLOBAL_STORE_NOT_LOGGED, SESSION_WITHOUT_GAP),  # refused before
    *(TOPIC_READ_TWICE, JOIN_CHANGELOGS_DELETED),
)
"""Differences that do not change what an application builds, or that its config or its text shows."""
_OF_DSL = re.compile(r"(?!KSTREAM-(?:PROCESS|TRANSFORM|FLATTRANSFORM)|KTABLE-TRANSFORM)[A-Z]+-[A-Z-]+-\d{10}")
"""Generated names of processors to which no `StoreBuilder` can be connected."""


def _has_unnamed_global_store(text: NodeTopology) -> bool:
    processors = (node for node in _find_processors(text) if node.name in text.global_nodes)
    return any(GENERATED.fullmatch(store) for node in processors for store in node.stores)


def _has_two_stores(text: NodeTopology) -> bool:
    return any(len(node.stores) > 1 for node in _find_processors(text))


def _has_added_store(text: NodeTopology) -> bool:
    """Return whether a `StoreBuilder` may have been added: a processor of the Processor API may use it."""
    processors = (node for node in _find_processors(text) if node.name not in text.global_nodes)
    return any(node.stores and _OF_DSL.fullmatch(node.name) is None for node in processors)


def _has_join_of_streams(text: NodeTopology) -> bool:
    return any(WINDOWED_NODE.fullmatch(node.name) for node in text.nodes)


def _has_repartition(text: NodeTopology) -> bool:
    read = {topic for node in text.nodes if isinstance(node, SourceNode) for topic in node.topics}
    return any(isinstance(node, SinkNode) and node.topic in read for node in text.nodes)


def _has_merge_and_repartition(text: NodeTopology) -> bool:
    is_merged = any(len(node.parents) > 1 for node in text.nodes if not isinstance(node, SourceNode))
    return is_merged and _has_repartition(text)


def _find_processors(text: NodeTopology) -> Iterator[ProcessorNode]:
    return (node for node in text.nodes if isinstance(node, ProcessorNode))


_CONCERNED: Mapping[str, Callable[[NodeTopology], bool]] = {
    UNNAMED_GLOBAL_STORE_FAILS.name: _has_unnamed_global_store,
    STORES_OF_SUPPLIERS_FIRST.name: _has_two_stores,
    PROCESS_FIX.name: _has_repartition,
    STORE_ADDED_AGAIN_STAYS_CONNECTED.name: _has_added_store,
    FIRST_KEY_CHANGE_FOUND.name: _has_merge_and_repartition,
    JOIN_STORES_WITH_HEADERS.name: _has_join_of_streams,
}
"""Difference → whether an application with this text may be concerned; others are not ruled out by a text."""


def upgrade_notes(application: Application, after: KafkaStreamsVersion) -> Iterator[str]:
    """Yield sentences about the upgrade of `application` to `after`."""
    before = application.kafka_streams
    if (before.major, before.minor) < _NEW_SUBSCRIPTIONS <= (after.major, after.minor):
        yield (
            "If the application joins tables by a foreign key, set `upgrade.from: "
            f'"{min(before.release, _LAST_OLD_SUBSCRIPTIONS)}"` for the first rolling restart, and remove it '
            "with a second one: since 3.4, subscriptions have another format (KAFKA-13769)."
        )
    if before.major < _FOUR <= after.major:
        yield "Kafka Streams 4 requires Java 11 and brokers of Kafka 2.1 or later."
        if _merges_repartitions(application):
            yield (
                "Kafka Streams 4 has no `transformValues` and `flatTransformValues`. If you replace them by "
                f"`processValues`, set `{_FLAG}: true` (KAFKA-19668): otherwise repartition topics are "
                "merged across them, and have other records than before."
            )


def how_to_keep(application: Application, after: KafkaStreamsVersion) -> str:
    """Return how to keep the internal topics of the version before, empty if the version decides."""
    if _is_set(application) and PROCESS_FIX.is_added(application.kafka_streams, after):
        return f"Remove the config `{_FLAG}` to keep the topics: it has an effect since the new version."
    if _merges_repartitions(application) and FIRST_KEY_CHANGE_FOUND.is_added(
        application.kafka_streams, after
    ):
        return (
            "To keep separate repartition topics, call `repartition` with the names of the topics right "
            f"before the operators that need them ({FIRST_KEY_CHANGE_FOUND.source})."
        )
    return ""


def unseen_differences(
    application: Application, after: KafkaStreamsVersion, text: NodeTopology | None
) -> tuple[Difference, ...]:
    """Return the differences of which a text of `Topology#describe()` does not show whether they matter.

    A text rules out differences of operators that it does not contain. `text` None = only topics are known.
    """
    return tuple(
        difference
        for difference in (*OLDER_DIFFERENCES, *DIFFERENCES)
        if difference not in _SHOWN
        and difference.is_in(after) is not difference.is_in(application.kafka_streams)
        and (difference is not PROCESS_FIX or _is_set(application))
        and (text is None or difference.name not in _CONCERNED or _CONCERNED[difference.name](text))
    )


def _is_set(application: Application) -> bool:
    return application.config.get(_FLAG, "").strip().lower() == "true"


def _merges_repartitions(application: Application) -> bool:
    return MERGE_REPARTITIONS in StreamsConfig.from_application(application).optimizations
