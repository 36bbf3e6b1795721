"""The full names of an application's topics. Partition counts need not be known."""

from collections.abc import Sequence

from headwater.compiler import StreamsConfig
from headwater.compiler.java.patterns import JavaPattern, UntranslatablePatternError
from headwater.model.acls import ANY_NAME
from headwater.model.compiled import CompiledApplication, TopicKind


def internal_prefix(compiled: CompiledApplication) -> str:
    """Return the prefix of the names of all internal topics."""
    return f"{StreamsConfig.of(compiled.application).topic_prefix or compiled.application.id}-"


def source_topics(compiled: CompiledApplication) -> frozenset[str]:
    """Return the user topics that are read, whether or not they exist."""
    read = {topic for part in compiled.subtopologies for topic in part.sources}
    read |= {*compiled.external_sources, *compiled.missing_sources}
    return frozenset(read - repartition_topics(compiled))


def sink_topics(compiled: CompiledApplication) -> frozenset[str]:
    """Return the user topics that are written, as far as they are known."""
    written = {topic for part in compiled.subtopologies for topic in part.sinks}
    written |= {sink.topic for sink in compiled.sinks}
    return frozenset(written - repartition_topics(compiled))


def repartition_topics(compiled: CompiledApplication) -> frozenset[str]:
    """Return the internal topics that are written, read and purged, including those of foreign-key joins."""
    named = {topic for part in compiled.subtopologies for topic in part.repartition_topics}
    counted = {topic.name for topic in compiled.internal_topics if topic.kind is not TopicKind.CHANGELOG}
    return frozenset(named | counted)


def changelog_topics(compiled: CompiledApplication) -> frozenset[str]:
    named = {topic for part in compiled.subtopologies for topic in part.changelog_topics}
    counted = {topic.name for topic in compiled.internal_topics if topic.kind is TopicKind.CHANGELOG}
    return frozenset(named | counted)


def pattern_names(pattern: str) -> Sequence[str]:
    """Return the names that match a pattern source. A star at the end stands for all names with this prefix.

    They may cover more than the pattern matches. Empty if the pattern has no fixed prefix.
    """
    try:
        found = JavaPattern(pattern).prefixes()
    except UntranslatablePatternError:
        return []
    names = [name if is_whole else f"{name}{ANY_NAME}" for name, is_whole in found]
    return [] if ANY_NAME in names else [name for name in names if name]
