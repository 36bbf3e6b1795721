"""A topic asks for more replicas than there are brokers, or has fewer than writing needs."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode, Severity
from infra.planner.situation import Situation, TopicState
from infra.planner.topic_actions import replication_factor
from infra.planner.wording import counted, whole


def replication(situation: Situation) -> Iterator[Problem]:
    """The broker refuses the first at creation; with the second every write fails (acks=all)."""
    for state in situation.topics:
        factor = (
            state.live.replication_factor if state.live else replication_factor(state, situation.snapshot)
        )
        if state.live is None and factor > situation.snapshot.brokers:
            yield _too_few_brokers(situation, state, factor)
        needed = _min_insync(situation, state)
        if 0 < factor < needed:
            yield _never_in_sync(situation, state, factor, needed)


def _min_insync(situation: Situation, state: TopicState) -> int:
    config = state.live.config if state.live else state.wanted.config
    return whole(config.get("min.insync.replicas", "")) or situation.snapshot.default_min_insync_replicas or 1


def _too_few_brokers(situation: Situation, state: TopicState, factor: int) -> Problem:
    brokers = situation.snapshot.brokers
    return situation.problem(
        ProblemCode.REPLICATION_FACTOR,
        f"Topic {state.name} is to have {counted(factor, 'replica')} on {counted(brokers, 'broker')}.",
        about=state,
        expected=f"a replication factor of at most {brokers}",
        found=f"{factor}",
        why="Kafka puts every replica of a partition on a broker of its own and refuses to create the topic.",
        fix=f"Set `replication.factor` to {brokers} or less, or add brokers.",
    )


def _never_in_sync(situation: Situation, state: TopicState, factor: int, needed: int) -> Problem:
    return situation.problem(
        ProblemCode.REPLICATION_FACTOR,
        f"Topic {state.name} {'has' if state.live else 'is to have'} {counted(factor, 'replica')} while "
        f"writing needs {needed} in sync.",
        about=state,
        expected=f"a replication factor of at least {needed} (min.insync.replicas)",
        found=f"{factor}",
        why="Every write with acks=all fails with NOT_ENOUGH_REPLICAS: the application cannot make progress.",
        fix=f"Raise `replication.factor` to {needed} or more, or lower `topic.min.insync.replicas`.",
        severity=Severity.WARNING if state.live else Severity.ERROR,
    )
