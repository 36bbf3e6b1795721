"""Problems of topics that are missing or replaced, or whose settings endanger data."""

from collections.abc import Sequence

from headwater.compiler.java.config_values import parse_whole
from headwater.model.broker_defaults import LARGEST_MESSAGE, BrokerDefault
from headwater.model.cluster import LiveTopic
from headwater.model.compiled import InternalTopic, TopicKind
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.planner.phrases import config_text, counted, few_names, quote_value
from headwater.planner.plans import ConfigChange
from headwater.planner.run import ActiveApplication, TopicState
from headwater.planner.settings import Misconfiguration, Settings

_LOST = "State or unprocessed records may be lost. An empty topic would hide the loss."
_RESTORE = (
    "Restore the topic from a backup. To continue without its data, stop the application and set "
    "`setup.reinitialize: true` for one `pulumi up`."
)
_CHECK = (
    "If you need the lost data, restore the topic, or rebuild its content by reprocessing the source topics."
)
_SINK = (
    "Make sure that the new topic is meant for this application. If it belongs to another one, remove it "
    "from the document, or write to another topic."
)
MIN_INSYNC = "min.insync.replicas"


def missing_sink_topic(application: ActiveApplication, topic: str) -> Problem:
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


def similar_names(application: ActiveApplication, state: TopicState, other: str) -> Problem:
    return application.problem(
        ProblemCode.REFUSED_BY_BROKERS,
        f"The names of {state.name} and {other} differ only in `.` and `_`.",
        topic=state,
        expected="names that differ in other characters",
        found=f"{state.name} and {other}, which are both new",
        why="The metrics of both topics would have the same names, so the brokers refuse to create the "
        "second one. `pulumi up` would fail halfway. Nothing has been changed.",
        fix="Give one of the two topics another name in the document.",
    )


def lost_topic(application: ActiveApplication, state: TopicState, *, is_error: bool) -> Problem:
    return application.problem(
        ProblemCode.MISSING_INTERNAL_TOPICS,
        f"{state.title} was set up and no longer exists.",
        topic=state,
        expected=f"the topic that was set up, {counted(state.partitions, 'partition')}",
        found="none",
        why=_LOST if state.is_internal else "Its records are lost, unless its readers processed all of them.",
        fix=_RESTORE if is_error else _fix_of_lost(application),
        severity=Severity.ERROR if is_error else Severity.WARNING,
    )


def _fix_of_lost(application: ActiveApplication) -> str:
    """Return what happens to a lost topic, and what to do: a running application may create it, too."""
    first = "" if application.caller.is_running else "Stop the application first. "
    return f"{first}{application.caller.reconciler} re-creates it, empty. {_CHECK}"


def replaced_topic(
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
    return _RESTORE


def replaced_retired_topic(
    record: SetupRecord, recorded: RecordedTopic, live: LiveTopic, fix: str, severity: Severity
) -> Problem:
    is_first_step = severity is Severity.WARNING
    return Problem(
        code=ProblemCode.TOPIC_REPLACED,
        summary=f"Topic {live.name} was deleted and re-created since it was "
        f"{'set up' if is_first_step else 'retired'}.",
        application=record.application_id,
        topic=live.name,
        expected=f"topic id {recorded.topic_id or 'unknown: none was recorded'}",
        found=f"topic id {live.topic_id}",
        why="Another application or user may have created it. Its records would be deleted, too.",
        fix=fix,
        severity=severity,
    )


def misconfigured_topic(
    application: ActiveApplication, state: TopicState, fault: Misconfiguration
) -> Problem:
    key, declared = fault.change.key, fault.change.declared
    option = f"--delete-config {key}" if declared is None else f"--add-config {key}={declared}"
    intended = _declaration_fix(application, state, key)
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


def harmful_setting(
    application: ActiveApplication, state: TopicState, default: BrokerDefault, value: str
) -> Problem:
    key, largest = default.key, application.config.largest_request
    harmless = default.harmless_value(largest)
    inherited = application.snapshot.topic_defaults.get(key)
    is_safe = inherited is not None and not default.is_harmful(inherited, largest)
    option = f"--delete-config {key}" if is_safe else f"--add-config {key}={harmless}"
    return application.problem(
        ProblemCode.MISCONFIGURED_INTERNAL_TOPIC,
        f"Setting {key} of internal topic {state.name} harms it.",
        topic=state,
        expected=f"{key} {'at least ' if key == LARGEST_MESSAGE else ''}{harmless}",
        found=f"{key} {value}, which is set on the topic, and which no document declares",
        why=f"Kafka Streams does not set it. {default.effect}",
        fix=f"Run `kafka-configs.sh --bootstrap-server BROKER --alter --topic {state.name} {option}`. If the "
        f"value is intended, {_declaration_fix(application, state, key)}",
        severity=Severity.WARNING,
    )


def _declaration_fix(application: ActiveApplication, state: TopicState, key: str) -> str:
    """Return how the document declares the live value: of one store, or of all internal topics."""
    defaults, document = application.snapshot.topic_defaults, application.compiled.document
    live = Settings(state.live, defaults).effective_value(key) if state.live else None
    topic, value = state.declared, quote_value(live or "")
    if application.compiled.is_observed:
        text = config_text({**topic.config, key: live or ""})
        return f"declare it for {state.name} below `observed.topics`: `{text}`."
    if not isinstance(topic, InternalTopic) or topic.kind is not TopicKind.CHANGELOG:
        return f"declare it in the application's config, for all internal topics: `topic.{key}: {value}`."
    if document is not None and document.exported is not None:
        return (
            f"set {key}={value} in the code, where store {topic.node} is created (`withLoggingEnabled`), and "
            "export the document again."
        )
    if document is not None and document.described is not None:
        return (
            f"declare it below `describe.stores`: `{topic.node}: {{overrides: {{{key}: {value}}}}}`, in "
            "addition to what is there."
        )
    return f"declare it at store {topic.node}: `logging: {{{key}: {value}}}` next to the name of the store."


def live_min_insync(application: ActiveApplication, state: TopicState) -> int:
    own = state.live.config.get(MIN_INSYNC, "") if state.live else ""
    return parse_whole(own) or application.snapshot.default_min_insync_replicas or 1


def too_few_brokers(application: ActiveApplication, states: Sequence[TopicState], factor: int) -> Problem:
    """Return a warning: the brokers decide. They count registered brokers; clients see brokers that answer.

    `ReplicationControlManager` accepts a topic as long as one broker is active (KRaft), so a broker that is
    being restarted is no reason to declare fewer replicas.
    """
    brokers, (replicas, _) = application.snapshot.brokers, _declared_names(application, states)
    subject, names = _subject_of(application, states, "requires", "require")
    return application.problem(
        ProblemCode.REPLICATION_FACTOR,
        f"{subject} {counted(factor, 'replica')}, and only {counted(brokers, 'broker')} "
        f"answer{'s' if brokers == 1 else ''}.",
        topic=states[0] if len(states) == 1 else None,
        expected=f"{counted(factor, 'broker')} that answer",
        found=f"{counted(brokers, 'broker')}{names}",
        why="Kafka creates a topic if enough brokers are registered, also if some are stopped: their "
        "replicas are missing until they start. Otherwise it refuses the topic (RefusedByBrokers).",
        fix="Start the brokers that are stopped. Only if the cluster has no more brokers, set "
        f"{replicas} to {brokers} or less, or add brokers.",
        severity=Severity.WARNING,
    )


def _subject_of(
    application: ActiveApplication, states: Sequence[TopicState], verb: str, verb_of_several: str
) -> tuple[str, str]:
    """Return the subject and the verb of a sentence, and the names of several topics for `found`."""
    if len(states) == 1:
        return f"Topic {states[0].name} {verb}", ""
    names = few_names([state.name for state in states])
    return f"{len(states):,} topics of {application.id} {verb_of_several}", f", for {names}"


def fewer_than_min_insync(
    application: ActiveApplication, states: Sequence[TopicState], factor: int, min_insync: int
) -> Problem:
    """Return a warning: the brokers require no more replicas than there are (`required_in_sync`).

    Several topics are reported together only if none of them exists yet.
    """
    has = "has" if states[0].live else "would have"
    subject, names = _subject_of(application, states, has, has)
    return application.problem(
        ProblemCode.REPLICATION_FACTOR,
        f"{subject} {counted(factor, 'replica')}, fewer than min.insync.replicas.",
        topic=states[0] if len(states) == 1 else None,
        expected=f"a replication factor of at least {min_insync} (min.insync.replicas)",
        found=f"{factor}{names}",
        why=f"Kafka requires no more replicas than a topic has: writes succeed with {factor} in sync, so the "
        "data survives the loss of fewer brokers than the setting asks for.",
        fix=_min_insync_fix(application, states, factor, min_insync),
        severity=Severity.WARNING,
    )


def _min_insync_fix(
    application: ActiveApplication, states: Sequence[TopicState], factor: int, min_insync: int
) -> str:
    """Return how to get enough replicas, or a smaller requirement, for a topic that exists or new ones."""
    state, (replicas, key) = states[0], _declared_names(application, states)
    is_declared = MIN_INSYNC in state.declared.config
    lower = f"{'lower' if is_declared else 'set'} {key} to {factor} in the document"
    if state.live is None:
        return f"Set {replicas} to {min_insync} or more, or {lower}."
    same = f", and declare the same {replicas}" if (state.declared.replication_factor or -1) > 0 else ""
    reassign = (
        f"Reassign its partitions to {min_insync} or more replicas (`kafka-reassign-partitions.sh`){same}."
    )
    if min_insync > live_min_insync(application, state):
        return f"{reassign} Or {lower}."
    alter = (
        f"`kafka-configs.sh --bootstrap-server BROKER --alter --topic {state.name} --add-config "
        f"{MIN_INSYNC}={factor}`"
    )
    return f"{reassign} Or lower the setting of the topic ({alter}){f', and {lower}' if is_declared else ''}."


def _declared_names(application: ActiveApplication, states: Sequence[TopicState]) -> tuple[str, str]:
    """Return where a document declares the replicas of the topics, and their setting."""
    if not states[0].is_internal:
        return "`replicationFactor`", f"`{MIN_INSYNC}`"
    if application.compiled.is_observed:
        name = states[0].name if len(states) == 1 else "each topic"
        where = f"of {name} below `observed.topics`"
        return (
            f"`replicationFactor` {where}",
            f"`{MIN_INSYNC}` in the `config` (with all of its settings) {where}",
        )
    return "`replication.factor`", f"`topic.{MIN_INSYNC}`"


def not_as_declared(application: ActiveApplication, state: TopicState, factor: int, declared: int) -> Problem:
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


def setting_removes_data(
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
