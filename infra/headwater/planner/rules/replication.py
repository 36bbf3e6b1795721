"""A topic has more replicas than brokers answer, fewer than writes require, or not as many as declared."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.application import ActiveApplication, TopicState
from headwater.planner.phrases import counted, whole
from headwater.planner.topic_actions import replication_factor

_KEY = "min.insync.replicas"


def replication(application: ActiveApplication) -> Iterator[Problem]:
    """The controller may refuse to create the first. Every write with acks=all to the second fails.

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
            is_new = state.live is None or required > _live_min_insync(application, state)
            yield _never_in_sync(application, state, factor, required, is_new=is_new)
        elif state.live is not None and 0 < declared != factor and not application.caller.is_running:
            yield _not_as_declared(application, state, factor, declared)


def _min_insync(application: ActiveApplication, state: TopicState) -> int:
    """Return what writes require after the run: `automatic` setup changes a declared setting."""
    declared = whole(state.declared.config.get(_KEY, "")) or 0
    if declared and (state.live is None or not application.is_manual):
        return declared
    return _live_min_insync(application, state)


def _live_min_insync(application: ActiveApplication, state: TopicState) -> int:
    own = state.live.config.get(_KEY, "") if state.live else ""
    return whole(own) or application.snapshot.default_min_insync_replicas or 1


def _too_few_brokers(application: ActiveApplication, state: TopicState, factor: int) -> Problem:
    """Return a warning: the brokers decide. They count registered brokers; a client sees those that answer.

    `ReplicationControlManager` accepts a topic as long as one broker is active (KRaft), so a broker that is
    being restarted is no reason to declare fewer replicas.
    """
    brokers, (replicas, _) = application.snapshot.brokers, _declared_names(state)
    return application.problem(
        ProblemCode.REPLICATION_FACTOR,
        f"Topic {state.name} requires {counted(factor, 'replica')}, and only {counted(brokers, 'broker')} "
        f"answer{'s' if brokers == 1 else ''}.",
        topic=state,
        expected=f"{counted(factor, 'broker')} that answer",
        found=counted(brokers, "broker"),
        why="Kafka creates the topic if enough brokers are registered, also if some are stopped: their "
        "replicas "
        "are missing until they start. Otherwise it refuses the topic (RefusedByBrokers).",
        fix=f"Start the brokers that are stopped. Only if the cluster has no more brokers, set "
        f"`{replicas}` to "
        f"{brokers} or less, or add brokers.",
        severity=Severity.WARNING,
    )


def _never_in_sync(
    application: ActiveApplication, state: TopicState, factor: int, required: int, *, is_new: bool
) -> Problem:
    """Return the problem: an error if it `is_new`, because this run would cause it."""
    return application.problem(
        ProblemCode.REPLICATION_FACTOR,
        f"Topic {state.name} {'has' if state.live else 'would have'} {counted(factor, 'replica')}, but "
        f"writes {'would require' if is_new and state.live else 'require'} {required} in sync.",
        topic=state,
        expected=f"a replication factor of at least {required} (min.insync.replicas)",
        found=f"{factor}",
        why="Every write with acks=all fails with NOT_ENOUGH_REPLICAS: the application cannot make progress.",
        fix=_in_sync(application, state, factor, required),
        severity=Severity.ERROR if is_new else Severity.WARNING,
    )


def _in_sync(application: ActiveApplication, state: TopicState, factor: int, required: int) -> str:
    """Return how to get enough replicas, or a smaller requirement, for a topic that exists or a new one."""
    replicas, key = _declared_names(state)
    is_declared = _KEY in state.declared.config
    lower = f"{'lower' if is_declared else 'set'} `{key}` to {factor} in the document"
    if state.live is None:
        return f"Set `{replicas}` to {required} or more, or {lower}."
    same = f", and declare the same `{replicas}`" if (state.declared.replication_factor or -1) > 0 else ""
    reassign = (
        f"Reassign its partitions to {required} or more replicas (`kafka-reassign-partitions.sh`){same}."
    )
    if required > _live_min_insync(application, state):
        return f"{reassign} Or {lower}."
    alter = (
        f"`kafka-configs.sh --bootstrap-server BROKER --alter --topic {state.name} --add-config "
        f"{_KEY}={factor}`"
    )
    return f"{reassign} Or lower the setting of the topic ({alter}){f', and {lower}' if is_declared else ''}."


def _declared_names(state: TopicState) -> tuple[str, str]:
    """Return where a document declares the replicas of the topic, and its setting."""
    if state.is_internal:
        return "replication.factor", f"topic.{_KEY}"
    return "replicationFactor", _KEY


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
