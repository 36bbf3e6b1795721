"""A topic asks for more replicas than there are brokers, or has fewer than writing needs."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode, Severity
from infra.planner.application import ActiveApplication, TopicState
from infra.planner.topic_actions import replication_factor
from infra.planner.wording import counted, whole


def replication(application: ActiveApplication) -> Iterator[Problem]:
    """The broker refuses the first at creation; with the second every write fails (acks=all)."""
    for state in application.topics:
        factor = (
            state.live.replication_factor if state.live else replication_factor(state, application.snapshot)
        )
        if state.live is None and factor > application.snapshot.brokers:
            yield _too_few_brokers(application, state, factor)
        needed = _min_insync(application, state)
        if 0 < factor < needed:
            yield _never_in_sync(application, state, factor, needed)


def _min_insync(application: ActiveApplication, state: TopicState) -> int:
    config = state.live.config if state.live else state.declared.config
    return (
        whole(config.get("min.insync.replicas", "")) or application.snapshot.default_min_insync_replicas or 1
    )


def _too_few_brokers(application: ActiveApplication, state: TopicState, factor: int) -> Problem:
    brokers = application.snapshot.brokers
    return application.problem(
        ProblemCode.REPLICATION_FACTOR,
        f"Topic {state.name} is to have {counted(factor, 'replica')} on {counted(brokers, 'broker')}.",
        topic=state,
        expected=f"a replication factor of at most {brokers}",
        found=f"{factor}",
        why="Kafka puts every replica of a partition on a broker of its own and refuses to create the topic.",
        fix=f"Set `replication.factor` to {brokers} or less, or add brokers.",
    )


def _never_in_sync(application: ActiveApplication, state: TopicState, factor: int, needed: int) -> Problem:
    return application.problem(
        ProblemCode.REPLICATION_FACTOR,
        f"Topic {state.name} {'has' if state.live else 'is to have'} {counted(factor, 'replica')} while "
        f"writing needs {needed} in sync.",
        topic=state,
        expected=f"a replication factor of at least {needed} (min.insync.replicas)",
        found=f"{factor}",
        why="Every write with acks=all fails with NOT_ENOUGH_REPLICAS: the application cannot make progress.",
        fix=f"Raise `replication.factor` to {needed} or more, or lower `topic.min.insync.replicas`.",
        severity=Severity.WARNING if state.live else Severity.ERROR,
    )
