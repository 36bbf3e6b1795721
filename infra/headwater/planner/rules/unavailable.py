"""Partitions of an application's topics have no leader, or are less available than they could be.

Replicas are not in sync, belong to brokers that are not registered any more, or are on too few racks.
"""

from collections.abc import Iterator, Sequence, Sized

from headwater.compiler.java.config_values import parse_whole
from headwater.model.cluster import LiveTopic, broker_phrase, required_in_sync
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.phrases import counted, listed
from headwater.planner.run import ActiveApplication

_MOST_PHRASES = 5
"""Names in one phrase; the others are counted."""
_KEY = "min.insync.replicas"


def unavailable_topics(application: ActiveApplication) -> Iterator[Problem]:
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
            expected=f"as many replicas in sync as {_KEY} requires",
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
    yield from _unregistered_replicas(application, topics)
    yield from _replicas_in_few_racks(application, topics)


def _unregistered_replicas(application: ActiveApplication, topics: Sequence[LiveTopic]) -> Iterator[Problem]:
    """Yield a problem for replicas that no broker of the cluster has: waiting does not help."""
    brokers = application.snapshot.registered
    if brokers is None:
        return
    gone = {topic.name: sorted(filter(brokers.is_unregistered, topic.silent)) for topic in topics}
    if found := [name for name, ids in gone.items() if ids]:
        ids = sorted({id_ for each in gone.values() for id_ in each})
        yield application.problem(
            ProblemCode.UNAVAILABLE_PARTITIONS,
            f"{counted(len(found), 'topic')} of {application.id} {_has_or_have(found)} replicas on brokers "
            "that are not registered.",
            expected="replicas on brokers of the cluster",
            found=_shorten_list([f"{name} ({broker_phrase(gone[name])})" for name in found]),
            why="These replicas are missing for good: the data survives the loss of fewer brokers.",
            fix=f"If {broker_phrase(ids)} will not start again, move the replicas to other brokers: "
            "`kafka-reassign-partitions.sh --bootstrap-server BROKER --generate --broker-list IDS "
            "--topics-to-move-json-file FILE`, then `--execute`.",
            severity=Severity.WARNING,
        )


def _replicas_in_few_racks(application: ActiveApplication, topics: Sequence[LiveTopic]) -> Iterator[Problem]:
    """Yield a problem for topics whose replicas are on fewer racks than possible.

    Kafka spreads the replicas of new topics. While the brokers of a rack are stopped, it cannot.
    """
    brokers = application.snapshot.registered
    racks = len(brokers.racks) if brokers is not None else 0
    short = [
        topic
        for topic in topics
        if topic.racks is not None and not topic.silent and topic.racks < min(racks, topic.replication_factor)
    ]
    if short:
        yield application.problem(
            ProblemCode.UNAVAILABLE_PARTITIONS,
            f"{counted(len(short), 'topic')} of {application.id} {_has_or_have(short)} replicas on fewer "
            "racks than possible.",
            expected="replicas on different racks",
            found=_shorten_list([f"{topic.name} ({counted(topic.racks or 0, 'rack')})" for topic in short]),
            why="If a rack fails, more replicas of a partition fail than necessary"
            + (", for some partitions all of them." if any(topic.racks == 1 for topic in short) else "."),
            fix="Move replicas to brokers of other racks: `kafka-reassign-partitions.sh --bootstrap-server "
            "BROKER --generate --broker-list IDS --topics-to-move-json-file FILE` proposes a plan that "
            "spreads them, `--execute` starts it.",
            severity=Severity.WARNING if any(topic.racks == 1 for topic in short) else Severity.INFO,
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
    own = parse_whole(topic.config.get(_KEY, ""))
    least = own or application.snapshot.default_min_insync_replicas or 1
    return (topic.in_sync or 0) - required_in_sync(least, topic.replication_factor)


def _has_or_have(topics: Sized) -> str:
    return "has" if len(topics) == 1 else "have"


def _shorten_list(phrases: Sequence[str]) -> str:
    more = f" and {len(phrases) - _MOST_PHRASES} more" if len(phrases) > _MOST_PHRASES else ""
    return f"{listed(phrases[:_MOST_PHRASES])}{more}"


def _unavailable_partitions(
    application: ActiveApplication,
    topics: Sequence[LiveTopic],
    summary: str,
    *,
    expected: str,
    why: str,
    severity: Severity = Severity.WARNING,
) -> Problem:
    silent = frozenset(id_ for topic in topics for id_ in topic.silent)
    stopped = f"; {broker_phrase(silent)} {'does' if len(silent) == 1 else 'do'} not answer" if silent else ""
    return application.problem(
        ProblemCode.UNAVAILABLE_PARTITIONS,
        summary,
        expected=expected,
        found=f"{_shorten_list([_replica_text(topic) for topic in topics])}{stopped}",
        why=why,
        fix="Start the brokers that have the missing replicas, or wait until these are in sync again: "
        "`kafka-topics.sh --bootstrap-server BROKER --describe --under-replicated-partitions` shows them.",
        severity=severity,
    )


def _replica_text(topic: LiveTopic) -> str:
    if topic.leaderless:
        return f"{topic.name} ({topic.leaderless} of {counted(topic.partitions, 'partition')})"
    return f"{topic.name} ({topic.in_sync} of {topic.replication_factor} in sync)"
