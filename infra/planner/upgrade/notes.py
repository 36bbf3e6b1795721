"""What to know about an upgrade that does not follow from comparing two topologies."""

from collections.abc import Iterator

from infra.compiler.streams_config import MERGE_REPARTITIONS, StreamsConfig
from infra.compiler.version_differences import (
    DIFFERENCES,
    FIRST_KEY_CHANGE_FOUND,
    JOIN_CHANGELOGS_DELETED,
    NO_OLD_GUARANTEES,
    NO_UPGRADE_FROM_2_3,
    OFFSET_RESETS,
    OLDER_DIFFERENCES,
    PROCESS_FIX,
    STREAMS_PROTOCOL,
    TOPIC_READ_TWICE,
    Difference,
)
from infra.model.topology import Application
from infra.model.versions import KafkaStreamsVersion

_FLAG = "__enable.process.processValue.fix__"
_FOUR = 4
_NEW_SUBSCRIPTIONS = (3, 4)
_LAST_OLD_SUBSCRIPTIONS = "3.3"
_SHOWN = (
    *(OFFSET_RESETS, NO_OLD_GUARANTEES, STREAMS_PROTOCOL, NO_UPGRADE_FROM_2_3),
    *(TOPIC_READ_TWICE, JOIN_CHANGELOGS_DELETED),
)
"""Differences that do not change what an application builds, or that its config or its text shows."""


def notes(application: Application, after: KafkaStreamsVersion) -> Iterator[str]:
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
        if _merges(application):
            yield (
                "Kafka Streams 4 has no `transformValues` and `flatTransformValues`. If you replace them by "
                f"`processValues`, set `{_FLAG}: true` (KAFKA-19668): otherwise repartition topics are "
                "merged across them, and have other records than before."
            )


def how_to_keep(application: Application, after: KafkaStreamsVersion) -> str:
    """Return how to keep the internal topics of the version before, empty if the version decides."""
    is_set = application.config.get(_FLAG, "").strip().lower() == "true"
    if is_set and _is_new(PROCESS_FIX, application, after):
        return f"Remove the config `{_FLAG}` to keep the topics: it has an effect since the new version."
    if _merges(application) and _is_new(FIRST_KEY_CHANGE_FOUND, application, after):
        return (
            "To keep separate repartition topics, call `repartition` with the names of the topics right "
            f"before the operators that need them ({FIRST_KEY_CHANGE_FOUND.source})."
        )
    return ""


def unseen_differences(application: Application, after: KafkaStreamsVersion) -> tuple[Difference, ...]:
    """Return the differences of which a text of `Topology#describe()` does not show whether they matter."""
    return tuple(
        difference
        for difference in (*OLDER_DIFFERENCES, *DIFFERENCES)
        if difference not in _SHOWN
        and difference.is_in(after) is not difference.is_in(application.kafka_streams)
    )


def _merges(application: Application) -> bool:
    return MERGE_REPARTITIONS in StreamsConfig.of(application).optimizations


def _is_new(difference: Difference, application: Application, after: KafkaStreamsVersion) -> bool:
    return difference.is_in(after) and not difference.is_in(application.kafka_streams)
