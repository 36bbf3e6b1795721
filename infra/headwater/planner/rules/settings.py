"""Settings of topics that lose data or stop writes."""

from collections.abc import Iterator, Mapping

from headwater.model.compiled import InternalTopic, TopicKind
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.actions import ConfigChange, TopicAction
from headwater.planner.application import ActiveApplication, TopicState
from headwater.planner.phrases import counted, whole
from headwater.planner.run import Run
from headwater.planner.settings import Misconfiguration, Settings, misconfigurations, removing_changes
from headwater.planner.topic_actions import replication_factor


def misconfigured(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698: `MisconfiguredInternalTopicException`. With `automatic` setup the setting is reset."""
    for state in application.internal:
        if isinstance(state.declared, InternalTopic) and state.live is not None:
            settings = Settings(state.live, application.snapshot.topic_defaults)
            for fault in misconfigurations(state.declared, settings):
                yield _misconfigured_topic(application, state, fault)


def _misconfigured_topic(
    application: ActiveApplication, state: TopicState, fault: Misconfiguration
) -> Problem:
    key, declared = fault.change.key, fault.change.declared
    option = f"--delete-config {key}" if declared is None else f"--add-config {key}={declared}"
    intended = _declaration_fix(state, key, application.snapshot.topic_defaults)
    return application.problem(
        ProblemCode.MISCONFIGURED_INTERNAL_TOPIC,
        f"Setting {key} of internal topic {state.name} endangers its data.",
        topic=state,
        expected=f"{key} {fault.expected}",
        found=f"{key} {fault.found}",
        why=fault.why,
        fix=f"Run `kafka-configs.sh --bootstrap-server BROKER --alter --topic {state.name} {option}`, or set "
        f"`internal.topics.setup: automatic` and run again. If the value is intended, {intended}"
        if application.is_manual
        else f"{application.caller.reconciler} resets it. Check whether data is already lost, and who "
        f"changed the setting. If the value is intended, {intended}",
        severity=Severity.ERROR if application.is_manual else Severity.WARNING,
    )


def _declaration_fix(state: TopicState, key: str, defaults: Mapping[str, str]) -> str:
    """Return how the document declares the live value: of one store, or of all internal topics."""
    value = Settings(state.live, defaults).effective(key) if state.live else None
    topic = state.declared
    if isinstance(topic, InternalTopic) and topic.kind is TopicKind.CHANGELOG:
        return (
            f"declare it at store {topic.node}: `logging: {{{key}: {_quote_value(value)}}}` next to the name "
            "of the store."
        )
    return (
        "declare it in the application's config, for all internal topics: "
        f"`topic.{key}: {_quote_value(value)}`."
    )


def _quote_value(value: str | None) -> str:
    """Return the value as YAML within a flow mapping: a comma would end it."""
    text = value or ""
    return f'"{text}"' if "," in text else text


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


def removing_settings(run: Run) -> Iterator[Problem]:
    """Yield a warning for each topic of an earlier run that will keep less: sinks and internal topics.

    A setting that Kafka Streams requires, and that another client has changed, is reset without it
    (`misconfigured`). Topics of other clients are reported by `unproven_adoption`.
    """
    actions = {action.name: action for action in run.actions}
    for application in run.active:
        for state in application.topics:
            if state.live is not None and state.is_ours and not state.is_replaced:
                changes = _chosen_changes(run, state, actions[state.name])
                if changes:
                    yield _setting_removes_data(application, state, changes)


def _chosen_changes(run: Run, state: TopicState, action: TopicAction) -> tuple[ConfigChange, ...]:
    """Return the changes with which Kafka removes records, if not all of them repair the topic."""
    live, defaults = state.live, run.snapshot.topic_defaults
    if live is None:
        return ()
    changes = removing_changes(live, action, defaults)
    declared = state.declared
    if isinstance(declared, InternalTopic):
        repaired = {fault.change.key for fault in misconfigurations(declared, Settings(live, defaults))}
        if all(change.key in repaired for change in changes):
            return ()
    return changes


def _setting_removes_data(
    application: ActiveApplication, state: TopicState, changes: tuple[ConfigChange, ...]
) -> Problem:
    return application.problem(
        ProblemCode.SETTING_REMOVES_DATA,
        f"{state.title} gets settings with which Kafka removes records that it keeps now.",
        topic=state,
        expected=", ".join(f"{change.key} {change.declared or 'not set'}" for change in changes),
        found=", ".join(f"{change.key} {change.live or 'not set'}" for change in changes),
        why="Records that Kafka removes cannot be restored.",
        fix="If the records are needed, declare the live values in the document. A policy "
        "`blastRadius: {removingSettings: 0}` refuses such changes.",
        severity=Severity.WARNING,
    )
