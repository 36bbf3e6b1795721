"""A topic has more replicas than there are brokers, fewer than writes require, or not as many as declared."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode, Severity
from infra.planner.application import ActiveApplication, TopicState
from infra.planner.phrases import counted, whole
from infra.planner.topic_actions import replication_factor


def replication(application: ActiveApplication) -> Iterator[Problem]:
    """The controller refuses to create the first. Every write with acks=all to the second fails.

    Neither Headwater nor Pulumi's provider changes the replicas of a topic that exists.
    """
    for state in application.topics:
        factor = (
            state.live.replication_factor if state.live else replication_factor(state, application.snapshot)
        )
        if state.live is None and factor > application.snapshot.brokers:
            yield _too_few_brokers(application, state, factor)
        required = _min_insync(application, state)
        declared = state.declared.replication_factor or -1
        if 0 < factor < required:
            yield _never_in_sync(application, state, factor, required)
        elif state.live is not None and 0 < declared != factor and not application.caller.is_running:
            yield _not_as_declared(application, state, factor, declared)


def _min_insync(application: ActiveApplication, state: TopicState) -> int:
    config = state.live.config if state.live else state.declared.config
    return (
        whole(config.get("min.insync.replicas", "")) or application.snapshot.default_min_insync_replicas or 1
    )


def _too_few_brokers(application: ActiveApplication, state: TopicState, factor: int) -> Problem:
    brokers = application.snapshot.brokers
    return application.problem(
        ProblemCode.REPLICATION_FACTOR,
        f"Topic {state.name} requires {counted(factor, 'replica')}, but the cluster has only "
        f"{counted(brokers, 'broker')}.",
        topic=state,
        expected=f"a replication factor of at most {brokers}",
        found=f"{factor}",
        why="Kafka puts each replica of a partition on another broker. It refuses to create the topic.",
        fix=f"Set `replication.factor` to {brokers} or less, or add brokers.",
    )


def _never_in_sync(application: ActiveApplication, state: TopicState, factor: int, required: int) -> Problem:
    return application.problem(
        ProblemCode.REPLICATION_FACTOR,
        f"Topic {state.name} {'has' if state.live else 'would have'} {counted(factor, 'replica')}, but "
        f"writes require {required} in sync.",
        topic=state,
        expected=f"a replication factor of at least {required} (min.insync.replicas)",
        found=f"{factor}",
        why="Every write with acks=all fails with NOT_ENOUGH_REPLICAS: the application cannot make progress.",
        fix=f"Raise `replication.factor` to {required} or more, or lower `topic.min.insync.replicas`.",
        severity=Severity.WARNING if state.live else Severity.ERROR,
    )


def _not_as_declared(
    application: ActiveApplication, state: TopicState, factor: int, declared: int
) -> Problem:
    is_short = factor < declared
    return application.problem(
        ProblemCode.REPLICATION_FACTOR,
        f"{state.title} has {'fewer' if is_short else 'more'} replicas than declared.",
        topic=state,
        expected=f"replication factor {declared}",
        found=f"replication factor {factor}",
        why="Its data survives the loss of fewer brokers than declared."
        if is_short
        else "It takes more disk space and network traffic than declared.",
        fix="Reassign its partitions (`kafka-reassign-partitions.sh`), or correct the declared factor. "
        "Neither Headwater nor Pulumi moves replicas.",
        severity=Severity.WARNING if is_short else Severity.INFO,
    )
