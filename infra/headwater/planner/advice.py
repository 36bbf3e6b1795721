"""What several fixes share: which topics decide a count, what an expansion does, how to delete a topic."""

from collections.abc import Iterable, Iterator, Sequence

from headwater.compiler.streams_config import Guarantee, SetupMode
from headwater.model.compiled import CompiledApplication, InternalTopic, SubTopology, TopicKind
from headwater.model.linear_hashing import is_doubled
from headwater.planner.counts import CountedApplication, CountedTopic
from headwater.planner.phrases import counted, listed
from headwater.planner.processors import live_changelogs

AUTOSCALING = "`partition.autoscaling.enabled: true`"


def deciding_sources(application: CountedApplication, topic: CountedTopic) -> Sequence[str]:
    """Return the user topics whose partition count an internal topic follows, sorted.

    Empty if an explicit count of the document decides, or if the topology is not known.
    """
    compiled = application.compiled
    if not isinstance(topic.declared, InternalTopic) or application.has_explicit_count(topic):
        return ()
    found, entered = set[str](), {topic.name}
    waiting = list(_upstream_topics(compiled, topic.declared))
    while waiting:
        name, count = waiting.pop()
        if name in entered or count != topic.partitions:
            continue
        entered.add(name)
        internal = next((each for each in compiled.internal_topics if each.name == name), None)
        if internal is not None:
            waiting += _upstream_topics(compiled, internal)
        else:
            found.add(name)
    return sorted(found)


def _upstream_topics(compiled: CompiledApplication, topic: InternalTopic) -> Iterator[tuple[str, int]]:
    """Yield the topics that decide a count, with theirs: inputs of the writers, or of the owner of the state.

    The members of a co-partition group have one count.
    """
    is_changelog = topic.kind is TopicKind.CHANGELOG
    for part in compiled.subtopologies:
        if topic.name in (part.changelog_topics if is_changelog else part.sinks):
            yield from part.source_partitions.items()
    counts = {
        name: count for part in compiled.subtopologies for name, count in part.source_partitions.items()
    }
    for group in compiled.copartition_groups:
        if topic.name in group:
            yield from ((name, counts[name]) for name in group if name in counts)


def expected_partitions(application: CountedApplication, topic: CountedTopic) -> str:
    """Return the count that a topic must have, with the source topics that decide it."""
    sources = deciding_sources(application, topic)
    text = counted(topic.partitions, "partition")
    return f"{text}, as many as {listed(sources)}" if sources else text


def moves_keys(application: CountedApplication) -> bool:
    """Return whether added partitions would move keys away from state that exists.

    A sub-topology has no state to lose if its changelog topics are all still to be created, or are empty and
    were never set up: a broker has created them automatically.
    """
    config, declared = application.config, application.compiled.application
    if config.is_statically_partitioned or declared.setup.allow_unsafe_expansion:
        return False
    if not application.compiled.is_stateful:
        return False
    filled = {topic.name for topic in application.internal if _may_hold_state(topic)}
    if application.compiled.is_observed:
        return any(
            topic.name in filled
            for topic in application.compiled.internal_topics
            if topic.kind is TopicKind.CHANGELOG
        )
    return any(
        not filled.isdisjoint(part.changelog_topics) or not _is_logged(application, part)
        for part in application.compiled.subtopologies
        if part.is_stateful
    )


def _may_hold_state(topic: CountedTopic) -> bool:
    """Return whether a changelog topic has state, or had some: what was set up may have been in use."""
    is_filled = topic.live_partitions is not None and topic.live_records != 0
    return is_filled or topic.recorded_partitions is not None


def _is_logged(application: CountedApplication, part: SubTopology) -> bool:
    """Return whether all state of a sub-topology is in changelog topics of its own."""
    names = set(part.changelog_topics)
    logged = {topic.node for topic in application.compiled.internal_topics if topic.name in names}
    return logged.issuperset(part.stores)


def partitioner_key(application: CountedApplication) -> str:
    """Return the config that declares a static partitioner; the JVM does not read the config of Spark."""
    document = application.compiled.document
    is_exported = document is not None and document.exported is not None
    is_on_jvm = is_exported or application.config.without_partitioner
    return "`producer.partitioner.class`" if is_on_jvm else "`static.partitioner.class`"


def how_to_expand(application: CountedApplication, *, follows_sources: bool = False) -> str:
    """Return how to add the missing partitions of internal topics, without autoscaling so far.

    With `follows_sources`, source topics decide their count, and not the document.
    """
    if not moves_keys(application):
        return f"To add the partitions, set {AUTOSCALING} in the application's config."
    return (
        f"If the producers partition statically, set {AUTOSCALING} and {partitioner_key(application)}. "
        f"{with_reshard(application) if follows_sources else ''}{with_processors(application)}"
        f"To expand and lose the connection to the old state, set {AUTOSCALING} "
        "and `setup.allowUnsafeExpansion: true`."
    )


def with_reshard(application: CountedApplication) -> str:
    """Return how the state moves with its keys; nothing if its topology is not known, or has processors."""
    if application.compiled.is_observed or application.compiled.application.processors is not None:
        return ""
    return "To keep the state, stop the application and run `headwater reshard`. "


def with_processors(application: CountedApplication) -> str:
    """Return how a number of processors avoids the loss; nothing if the application cannot have one."""
    document = application.compiled.document
    if document is not None and not document.has_calls:
        return ""
    parts = [part for part in application.compiled.subtopologies if part.is_stateful]
    live = set(live_changelogs(application).values())
    if len(live) != 1 or any(part.source_changelogs or not _is_logged(application, part) for part in parts):
        return ""
    (count,) = live
    counts = {partitions for part in parts for partitions in part.source_partitions.values()}
    first = ""
    if not all(is_doubled(partitions, count) for partitions in counts):
        first = f"expand the source topics to {_next_doubled(max(counts), count)} partitions and "
    settings = [] if application.config.autoscaling else [AUTOSCALING]
    if application.config.guarantee is not Guarantee.EXACTLY_ONCE_V2:
        settings.append(f"`processing.guarantee: {Guarantee.EXACTLY_ONCE_V2.value}`")
    before = f"{', '.join(settings)} and " if settings else ""
    instruction = f"{first}set {before}`processors: {count}`"
    return f"If it runs with `headwater run`, {instruction}: keys stay with their state. "


def _next_doubled(count: int, initial: int) -> int:
    """Return the smallest doubled count that is at least `count`."""
    while initial < count:
        initial *= 2
    return initial


def delete_topic(application: CountedApplication, topic: CountedTopic) -> str:
    """Return how to delete an internal topic so that the next run creates it, to follow `If …, `.

    With `manual` setup, a topic that was set up must not just be missing; neither may one of several that
    were never set up.
    """
    delete = f"`kafka-topics.sh --bootstrap-server BROKER --delete --topic {topic.name}`"
    created = f"which creates it with {counted(topic.partitions, 'partition')}"
    if application.config.setup_mode is not SetupMode.MANUAL:
        return f"stop the application, delete the topic ({delete}) and run `pulumi up`, {created}."
    others = [each for each in application.internal if each is not topic and each.live_partitions is not None]
    is_recorded = topic.recorded_partitions is not None or not application.caller.knows_setup
    if not is_recorded and not others:
        return f"stop the application, delete the topic ({delete}) and run `pulumi up`, {created}."
    option = "reinitialize" if is_recorded else "ifIncomplete"
    return (
        f"stop the application, delete the topic ({delete}) and set `setup.{option}: true` for one "
        f"`pulumi up`, {created}."
    )


def topics_below(topics: Iterable[CountedTopic], count: int) -> list[str]:
    """Return the names of the existing topics with fewer than `count` partitions, sorted."""
    return sorted(
        topic.name for topic in topics if topic.live_partitions is not None and topic.live_partitions < count
    )
