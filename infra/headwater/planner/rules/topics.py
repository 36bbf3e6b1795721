"""Topics that are missing, unavailable or replaced by other topics."""

from collections.abc import Iterator, Sequence

from headwater.compiler.source_problems import missing_topic
from headwater.model.cluster import LiveTopic
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Problem, ProblemCode, Severity, errors
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.planner.application import ActiveApplication, TopicState
from headwater.planner.counts import CountedApplication
from headwater.planner.phrases import counted, listed, whole
from headwater.planner.run import Run

_REPORTED = (
    ProblemCode.MISSING_SOURCE_TOPIC,
    ProblemCode.UNDECIDABLE_PARTITIONS,
    ProblemCode.FOLLOW_CYCLE,
)


def missing_source(application: CountedApplication) -> Iterator[Problem]:
    """Kafka Streams throws MissingSourceTopicException, which names no topic.

    The compiler reports most of them itself, with the operator that reads the topic.
    """
    compiled = application.compiled
    reported = {problem.topic for problem in compiled.problems if problem.code in _REPORTED}
    for name in compiled.missing_sources:
        if name not in reported:
            yield missing_topic(
                name,
                application.caller,
                why="The partition counts of the internal topics follow the source topics. The application "
                "itself would stop with MissingSourceTopicException.",
                fix=f"Create {name}, or correct its name in the document.",
                application=application.id,
                location=compiled.application.at,
            )


def missing_sink(run: Run) -> Iterator[Problem]:
    """Yield a hint for each topic: planning needs no sinks, but the application does when it writes."""
    managed = {sink.topic for compiled in run.compiled for sink in compiled.sinks}
    for application in run.active:
        if not errors(application.compiled.problems):
            for topic in _written_topics(application.compiled):
                if topic not in managed and topic not in run.snapshot.topics:
                    yield _missing_sink_topic(application, topic)


def _missing_sink_topic(application: ActiveApplication, topic: str) -> Problem:
    return Problem(
        code=ProblemCode.MISSING_SINK_TOPIC,
        summary=f"Sink topic {topic} does not exist, and no document manages it.",
        application=application.id,
        topic=topic,
        expected="an existing topic",
        found="no such topic",
        why="Brokers that create topics automatically give it their default partition count. Otherwise the "
        "application fails when it writes the first record.",
        fix=f"Create it, or add `{topic}:` to `topics` of the document.{application.caller.describe_hint}",
        location=application.compiled.application.at,
        severity=Severity.INFO,
    )


def _written_topics(compiled: CompiledApplication) -> list[str]:
    """Return the user topics that sinks name, sorted."""
    internal = {topic for part in compiled.subtopologies for topic in part.repartition_topics}
    internal.update(topic.name for topic in compiled.internal_topics)
    return sorted({topic for part in compiled.subtopologies for topic in part.sinks} - internal)


_MOST_NAMES = 5
"""Names in one phrase; the others are counted."""
_REQUIRED_REPLICAS = "min.insync.replicas"


def unavailable(application: ActiveApplication) -> Iterator[Problem]:
    """Yield one problem for each kind of fault: brokers that stop concern many topics at once.

    No run changes replicas, so none is an error. A topic is reported once, for its worst fault. A running
    application sees a fault in its own requests.
    """
    if application.caller.is_running:
        return
    topics = _used_topics(application)
    leaderless = [topic for topic in topics if topic.leaderless]
    others = [topic for topic in topics if not topic.leaderless and _is_short(topic)]
    blocked = [topic for topic in others if _spare_replicas(application, topic) < 0]
    last = [topic for topic in others if _spare_replicas(application, topic) == 0]
    if leaderless:
        number = sum(topic.leaderless for topic in leaderless)
        yield _unavailable_partitions(
            application,
            leaderless,
            f"{counted(number, 'partition')} of topics of {application.id} "
            f"{'has' if number == 1 else 'have'} no leader.",
            expected="a leader for each partition",
            why="Clients can neither read nor write these partitions: the application makes no progress.",
        )
    if blocked:
        yield _unavailable_partitions(
            application,
            blocked,
            f"{counted(len(blocked), 'topic')} of {application.id} {_has_or_have(blocked)} fewer replicas "
            "in sync than writes require.",
            expected=f"as many replicas in sync as {_REQUIRED_REPLICAS} requires",
            why="Every write with acks=all fails with NOT_ENOUGH_REPLICAS: the application makes no "
            "progress.",
        )
    if last:
        yield _unavailable_partitions(
            application,
            last,
            f"{counted(len(last), 'topic')} of {application.id} {_has_or_have(last)} no more replicas "
            "in sync than writes require.",
            expected="all replicas in sync",
            why="If one more broker stops, every write with acks=all fails.",
        )
    if left := [topic for topic in others if _spare_replicas(application, topic) > 0]:
        yield _unavailable_partitions(
            application,
            left,
            f"{counted(len(left), 'topic')} of {application.id} {_has_or_have(left)} replicas that are "
            "not in sync.",
            expected="all replicas in sync",
            why="Their data survives the loss of fewer brokers.",
            severity=Severity.INFO,
        )


def _used_topics(application: ActiveApplication) -> Sequence[LiveTopic]:
    declared = [state.live for state in application.topics if state.live is not None]
    live = application.snapshot.topics
    sources = [live[name] for name in application.compiled.external_sources if name in live]
    return sorted({topic.name: topic for topic in (*declared, *sources)}.values(), key=lambda each: each.name)


def _is_short(topic: LiveTopic) -> bool:
    return topic.in_sync is not None and topic.in_sync < topic.replication_factor


def _spare_replicas(application: ActiveApplication, topic: LiveTopic) -> int:
    """Return how many replicas in sync the partition may lose before writes fail."""
    own = whole(topic.config.get(_REQUIRED_REPLICAS, ""))
    required = own or application.snapshot.default_min_insync_replicas or 1
    return (topic.in_sync or 0) - required


def _has_or_have(topics: Sequence[LiveTopic]) -> str:
    return "has" if len(topics) == 1 else "have"


def _unavailable_partitions(
    application: ActiveApplication,
    topics: Sequence[LiveTopic],
    summary: str,
    *,
    expected: str,
    why: str,
    severity: Severity = Severity.WARNING,
) -> Problem:
    names = [_replica_text(topic) for topic in topics[:_MOST_NAMES]]
    more = f" and {len(topics) - _MOST_NAMES} more" if len(topics) > _MOST_NAMES else ""
    return application.problem(
        ProblemCode.UNAVAILABLE_PARTITIONS,
        summary,
        expected=expected,
        found=f"{listed(names)}{more}",
        why=why,
        fix="Start the brokers that have the missing replicas, or wait until these are in sync again: "
        "`kafka-topics.sh --bootstrap-server BROKER --describe --under-replicated-partitions` shows them.",
        severity=severity,
    )


def _replica_text(topic: LiveTopic) -> str:
    if topic.leaderless:
        return f"{topic.name} ({topic.leaderless} of {counted(topic.partitions, 'partition')})"
    return f"{topic.name} ({topic.in_sync} of {topic.replication_factor} in sync)"


def lost_topics(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698: only a setup record distinguishes a first start from data loss.

    With `automatic` setup the topic is re-created, with a warning. A managed sink topic is re-created in both
    modes, because the application can continue without its data.
    """
    for state in application.topics:
        if state.is_lost:
            yield _lost_topic(application, state, is_error=state.is_internal and not application.accepts_loss)


def _lost_topic(application: ActiveApplication, state: TopicState, *, is_error: bool) -> Problem:
    return application.problem(
        ProblemCode.MISSING_INTERNAL_TOPICS,
        f"{state.title} was set up and no longer exists.",
        topic=state,
        expected=f"the topic that was set up, {counted(state.partitions, 'partition')}",
        found="none",
        why=_LOST if state.is_internal else "Its records are lost, unless its readers processed all of them.",
        fix=_RESTORE if is_error else f"{application.caller.reconciler} re-creates it, empty. {_CHECK}",
        severity=Severity.ERROR if is_error else Severity.WARNING,
    )


_LOST = "State or unprocessed records may be lost. An empty topic would hide the loss."
_RESTORE = (
    "Restore the topic from a backup. To continue without its data, stop the application and set "
    "`setup.reinitialize: true` for one `pulumi up`."
)
_CHECK = (
    "If you need the lost data, restore the topic, or rebuild its content by reprocessing the source topics."
)


def replaced_topics(application: ActiveApplication) -> Iterator[Problem]:
    """Yield problems for topics with another id than recorded. One with records may have been restored.

    A managed sink topic is a warning: the application can continue with another one.
    """
    for state in application.topics:
        if state.is_replaced and state.recorded is not None and state.live is not None:
            # While the application is running, no user restores a topic: new records are its own.
            is_loss = state.is_internal and (state.is_emptied or application.caller.is_running)
            severity = Severity.ERROR if is_loss and not application.accepts_loss else Severity.WARNING
            ids = (state.recorded.topic_id, state.live.topic_id)
            yield _replaced_topic(application, state, ids, severity)


def _replaced_topic(
    application: ActiveApplication, state: TopicState, ids: tuple[str, str], severity: Severity
) -> Problem:
    recorded, live = ids
    return application.problem(
        ProblemCode.MISSING_INTERNAL_TOPICS,
        f"{state.title} was deleted and re-created since it was set up, and "
        f"{'is empty' if state.is_emptied else 'holds records'}.",
        topic=state,
        expected=f"topic id {recorded}",
        found=f"topic id {live}, {'empty' if state.is_emptied else 'not empty'}",
        why="Unless it was restored, its data is lost: state, or records that were not processed yet."
        if state.is_internal
        else "Its records are lost, unless it was restored or its readers processed all of them. From now "
        "on the stack manages the new topic.",
        fix=_fix_of_replaced(application, severity) if state.is_internal else _SINK,
        severity=severity,
    )


def _fix_of_replaced(application: ActiveApplication, severity: Severity) -> str:
    if severity is not Severity.ERROR:
        return (
            "Make sure that it was restored on purpose. Otherwise rebuild the state by reprocessing the "
            "source topics."
        )
    if application.caller.is_running:
        return (
            "Restore the topic while the application is stopped, or rebuild the state by reprocessing the "
            "source topics. Then start the application again."
        )
    return (
        "Restore the topic from a backup. To continue without its data, stop the application and set "
        "`setup.reinitialize: true` for one `pulumi up`."
    )


_SINK = (
    "Make sure that the new topic is meant for this application. If it belongs to another one, remove it "
    "from the document, or write to another topic."
)


def retired_topics(run: Run) -> Iterator[Problem]:
    """Yield a problem for each internal topic whose id is not the recorded one.

    The first step of retiring records the ids that it finds, so it continues with a warning. The second step
    deletes only topics with these ids.
    """
    for record in run.retiring:
        for recorded, live in _replaced_topics(record, run):
            if recorded.topic_id:
                yield _replaced_retired_topic(record, recorded, live, _FIRST_STEP, Severity.WARNING)
    for record in run.deleted:
        for recorded, live in _replaced_topics(record, run):
            yield _replaced_retired_topic(record, recorded, live, _SECOND_STEP, Severity.ERROR)


def _replaced_topics(record: SetupRecord, run: Run) -> Iterator[tuple[RecordedTopic, LiveTopic]]:
    for name, recorded in sorted(record.topics.items()):
        live = run.snapshot.topics.get(name)
        if live is not None and not recorded.is_sink and live.topic_id != recorded.topic_id:
            yield recorded, live


def _replaced_retired_topic(
    record: SetupRecord, recorded: RecordedTopic, live: LiveTopic, fix: str, severity: Severity
) -> Problem:
    is_first_step = severity is Severity.WARNING
    return Problem(
        code=ProblemCode.TOPIC_REPLACED,
        summary=f"Topic {live.name} is not the one that was {'set up' if is_first_step else 'retired'}: it "
        "was deleted and re-created since.",
        application=record.application_id,
        topic=live.name,
        expected=f"topic id {recorded.topic_id or 'unknown: none was recorded'}",
        found=f"topic id {live.topic_id}",
        why="Another application or user may have created it. Its records would be deleted, too.",
        fix=fix,
        severity=severity,
    )


_FIRST_STEP = (
    "If it may be deleted, continue: this run records its id. To keep it, set `lifecycle: released` before "
    "you remove the document."
)
_SECOND_STEP = (
    "To keep it, restore the document with `lifecycle: released` and run `pulumi up`. To delete it, restore "
    "the document with `lifecycle: retired` and run `pulumi up`, which records its id. Then remove the "
    "document again."
)
