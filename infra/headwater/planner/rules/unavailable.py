"""Partitions of an application's topics have no leader, or are less available than they could be.

Replicas are not in sync, belong to brokers that are not registered any more, or are on too few racks.
"""

from collections.abc import Iterable, Iterator, Sequence, Sized

from headwater.model.cluster import LiveTopic
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.application import ActiveApplication
from headwater.planner.phrases import counted, listed, whole

_MOST = 5
"""Names in one phrase; the others are counted."""
_KEY = "min.insync.replicas"


def unavailable(application: ActiveApplication) -> Iterator[Problem]:
    """Yield one problem for each kind of fault: brokers that stop concern many topics at once.

    No run changes replicas, so none is an error. A topic is reported once, for its worst fault. A running
    application sees a fault in its own requests.
    """
    if application.caller.is_running:
        return
    topics = _topics(application)
    leaderless = [topic for topic in topics if topic.leaderless]
    others = [topic for topic in topics if not topic.leaderless and _is_short(topic)]
    blocked = [topic for topic in others if _spare(application, topic) < 0]
    last = [topic for topic in others if _spare(application, topic) == 0]
    if leaderless:
        number = sum(topic.leaderless for topic in leaderless)
        yield _problem(
            application,
            leaderless,
            f"{counted(number, 'partition')} of topics of {application.id} "
            f"{'has' if number == 1 else 'have'} no leader.",
            expected="a leader for each partition",
            why="Clients can neither read nor write these partitions: the application makes no progress.",
        )
    if blocked:
        yield _problem(
            application,
            blocked,
            f"{counted(len(blocked), 'topic')} of {application.id} {_have(blocked)} fewer replicas in "
            f"sync than "
            "writes require.",
            expected=f"as many replicas in sync as {_KEY} requires",
            why="Every write with acks=all fails with NOT_ENOUGH_REPLICAS: the application makes no "
            "progress.",
        )
    if last:
        yield _problem(
            application,
            last,
            f"{counted(len(last), 'topic')} of {application.id} {_have(last)} no more replicas in sync "
            f"than writes "
            "require.",
            expected="all replicas in sync",
            why="If one more broker stops, every write with acks=all fails.",
        )
    if left := [topic for topic in others if _spare(application, topic) > 0]:
        yield _problem(
            application,
            left,
            f"{counted(len(left), 'topic')} of {application.id} {_have(left)} replicas that are not in sync.",
            expected="all replicas in sync",
            why="Their data survives the loss of fewer brokers.",
            severity=Severity.INFO,
        )
    yield from _unregistered(application, topics)
    yield from _not_spread(application, topics)


def _unregistered(application: ActiveApplication, topics: Sequence[LiveTopic]) -> Iterator[Problem]:
    """Yield a problem for replicas that no broker of the cluster has: waiting does not help."""
    brokers = application.snapshot.registered
    if brokers is None:
        return
    gone = {topic.name: sorted(filter(brokers.is_unregistered, topic.silent)) for topic in topics}
    if found := [name for name, ids in gone.items() if ids]:
        ids = sorted({id_ for each in gone.values() for id_ in each})
        yield application.problem(
            ProblemCode.UNAVAILABLE_PARTITIONS,
            f"{counted(len(found), 'topic')} of {application.id} {_have(found)} replicas on brokers that "
            f"are not registered.",
            expected="replicas on brokers of the cluster",
            found=_shortened([f"{name} ({_brokers(gone[name])})" for name in found]),
            why="These replicas are missing for good: the data survives the loss of fewer brokers.",
            fix=f"If {_brokers(ids)} will not start again, move the replicas to other brokers: "
            "`kafka-reassign-partitions.sh --bootstrap-server BROKER --generate --broker-list IDS "
            "--topics-to-move-json-file FILE`, then `--execute`.",
            severity=Severity.WARNING,
        )


def _not_spread(application: ActiveApplication, topics: Sequence[LiveTopic]) -> Iterator[Problem]:
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
            f"{counted(len(short), 'topic')} of {application.id} {_have(short)} replicas on fewer racks than "
            f"possible.",
            expected="replicas on different racks",
            found=_shortened([f"{topic.name} ({counted(topic.racks or 0, 'rack')})" for topic in short]),
            why="If a rack fails, more replicas of a partition fail than necessary"
            + (", for some partitions all of them." if any(topic.racks == 1 for topic in short) else "."),
            fix="Move replicas to brokers of other racks: `kafka-reassign-partitions.sh --bootstrap-server "
            "BROKER --generate --broker-list IDS --topics-to-move-json-file FILE` proposes a plan that "
            "spreads them, `--execute` starts it.",
            severity=Severity.WARNING if any(topic.racks == 1 for topic in short) else Severity.INFO,
        )


def _topics(application: ActiveApplication) -> Sequence[LiveTopic]:
    declared = [state.live for state in application.topics if state.live is not None]
    live = application.snapshot.topics
    sources = [live[name] for name in application.compiled.external_sources if name in live]
    return sorted({topic.name: topic for topic in (*declared, *sources)}.values(), key=lambda each: each.name)


def _is_short(topic: LiveTopic) -> bool:
    return topic.in_sync is not None and topic.in_sync < topic.replication_factor


def _spare(application: ActiveApplication, topic: LiveTopic) -> int:
    """Return how many replicas in sync the partition may lose before writes fail."""
    own = whole(topic.config.get(_KEY, ""))
    required = own or application.snapshot.default_min_insync_replicas or 1
    return (topic.in_sync or 0) - required


def _have(topics: Sized) -> str:
    return "has" if len(topics) == 1 else "have"


def _brokers(ids: Iterable[int]) -> str:
    numbers = sorted(ids)
    return f"broker{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"


def _shortened(phrases: Sequence[str]) -> str:
    more = f" and {len(phrases) - _MOST} more" if len(phrases) > _MOST else ""
    return f"{listed(phrases[:_MOST])}{more}"


def _problem(
    application: ActiveApplication,
    topics: Sequence[LiveTopic],
    summary: str,
    *,
    expected: str,
    why: str,
    severity: Severity = Severity.WARNING,
) -> Problem:
    silent = frozenset(id_ for topic in topics for id_ in topic.silent)
    stopped = f"; {_brokers(silent)} {'does' if len(silent) == 1 else 'do'} not answer" if silent else ""
    return application.problem(
        ProblemCode.UNAVAILABLE_PARTITIONS,
        summary,
        expected=expected,
        found=f"{_shortened([_described(topic) for topic in topics])}{stopped}",
        why=why,
        fix="Start the brokers that have the missing replicas, or wait until these are in sync again: "
        "`kafka-topics.sh --bootstrap-server BROKER --describe --under-replicated-partitions` shows them.",
        severity=severity,
    )


def _described(topic: LiveTopic) -> str:
    if topic.leaderless:
        return f"{topic.name} ({topic.leaderless} of {counted(topic.partitions, 'partition')})"
    return f"{topic.name} ({topic.in_sync} of {topic.replication_factor} in sync)"
