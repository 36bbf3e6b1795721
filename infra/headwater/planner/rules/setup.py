"""The setup of an application: first, repeated, incomplete, with another id, with another version."""

from collections.abc import Iterator

from headwater.compiler.streams_config import SetupMode, StreamsConfig
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.records import OwnershipRecord
from headwater.model.topology import Lifecycle
from headwater.model.versions import DEFAULT_VERSION
from headwater.planner.phrases import counted, listed
from headwater.planner.rules.counts import refused_without_the_switch
from headwater.planner.run import ActiveApplication, Run
from headwater.planner.upgrade import ApplicationUpgrade, Change, ChangeKind, State
from headwater.planner.upgrade.topology import RESET

_REMOVAL = (
    "Remove `setup.allowUnsafeExpansion` from the document. An application on Spark does not start without "
    "it until it has run with the new partition counts."
)


def already_set_up(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698, `InternalTopicsAlreadySetupException`: `init()` finds all internal topics.

    The same holds for a single topic that a changed topology adds and that exists already.
    """
    if not application.caller.knows_setup or not application.is_manual or application.setup.adopt:
        return
    if not application.is_decided:
        return
    foreign = [state for state in application.internal if state.live and not state.is_ours]
    is_incomplete = application.record is None and len(foreign) < len(application.internal)
    if not foreign or is_incomplete:
        return
    yield application.problem(
        ProblemCode.INTERNAL_TOPICS_ALREADY_SETUP,
        f"Internal topics of {application.id} exist, and the stack has no record of their setup.",
        expected="no internal topic exists before Headwater sets it up",
        found=f"{counted(len(foreign), 'topic')}: {listed(state.name for state in foreign)}",
        why="They may hold the state of a running application, or an earlier application left them behind. "
        "With `internal.topics.setup: manual` a user must decide.",
        fix="If the stack's state was restored or its backend is new, if `headwater state copy` created the "
        "topics, or if the application ran without Headwater, was released or had this id before, the topics "
        "are in use: set `setup.adopt: true` for one `pulumi up`, which manages them as they are. Delete "
        "them only if no application uses them and their data is not needed.",
    )


def incomplete_setup(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698: `MissingInternalTopicsException` unless `setupInternalTopicsIfIncomplete`."""
    if not application.is_manual or application.setup.if_incomplete or not application.is_decided:
        return
    missing = [state for state in application.internal if state.live is None]
    total = len(application.internal)
    if application.record is not None or len(missing) in (0, total):
        return
    for state in missing:
        yield application.problem(
            ProblemCode.MISSING_INTERNAL_TOPICS,
            f"Internal topic {state.name} is missing: only {total - len(missing)} of {total} exist.",
            topic=state,
            expected=f"a topic with {state.partitions} partitions",
            found="none",
            why="Either its setup was interrupted, or topics and their data were lost.",
            fix="If no data was lost, set `setup.ifIncomplete: true`: Headwater then creates the missing "
            "topics and manages the others. Otherwise restore the topic first, and set "
            "`setup.adopt: true` for one `pulumi up`.",
        )


def application_removed(run: Run) -> Iterator[Problem]:
    """Removing a file deletes no topic: a document must say `released` or `retired` first."""
    if not run.policy.are_documents_complete:
        return
    for record in run.removed:
        if not record.retired:
            yield Problem(
                code=ProblemCode.APPLICATION_REMOVED,
                summary=f"Application {record.application_id} was set up, but its document was removed.",
                application=record.application_id,
                expected="a document for each application that was set up",
                found=f"none; {counted(len(record.topics), 'topic')}: {listed(record.topics) or 'none'}",
                why="A moved or lost file must not delete topics and their state.",
                fix="Restore the document. To stop managing the application, restore it with `lifecycle: "
                "released` (its topics stay) or with `lifecycle: retired`, run `pulumi up`, and remove it "
                "then (its internal topics are deleted by the next `pulumi up`). If the application has a "
                "new id, declare the old one as `renamedFrom`.",
            )


def retired_without_record(run: Run) -> Iterator[Problem]:
    """Yield a warning for each application to retire that the stack has not set up: nothing is deleted."""
    for compiled in run.compiled if run.policy.stack is not None else ():
        id_ = compiled.application.id
        is_manual = StreamsConfig.from_application(compiled.application).setup_mode is SetupMode.MANUAL
        adopt = " and `setup.adopt: true`" if is_manual else ""
        if compiled.application.lifecycle is Lifecycle.RETIRED and id_ not in run.records:
            yield Problem(
                code=ProblemCode.CONFIG_HAS_NO_EFFECT,
                summary=f"{id_} has `lifecycle: retired`, but this stack does not manage it.",
                application=id_,
                expected="an application that this stack has set up",
                found="no record of its setup",
                why="Nothing is deleted, neither in this run nor without the document.",
                fix=f"Remove the document of {id_}, and retire it in the stack that manages it if its "
                "internal topics are to be deleted. If no stack manages it, run `pulumi up` with `lifecycle: "
                f"active`{adopt} first, which adopts the topics.",
                severity=Severity.WARNING,
            )


def reinitialize_stays_on(application: ActiveApplication) -> Iterator[Problem]:
    """Yield a warning: left on, it would hide the next loss of a topic."""
    if not application.setup.reinitialize or application.record is None:
        return
    if not application.has_losses:
        yield _unneeded_reinitialize(application)


def _unneeded_reinitialize(application: ActiveApplication) -> Problem:
    switch = application.setup.in_stack.get("reinitialize")
    return application.problem(
        ProblemCode.CONFIG_HAS_NO_EFFECT,
        f"{application.id} has `setup.reinitialize: true`, but no topic is lost.",
        expected="`setup.reinitialize` only for the `pulumi up` that needs it",
        found=f"no lost topic, and `{switch.label}: true`" if switch else "no lost topic",
        why="The next time that an internal topic is lost, it would be re-created, empty, without an error.",
        fix=switch.removal if switch else "Remove `setup.reinitialize` from the document.",
        severity=Severity.WARNING,
        at=switch.at if switch else None,
    )


def unsafe_expansion_stays_on(application: ActiveApplication) -> Iterator[Problem]:
    """Yield a warning: left on, it would hide that the next expansion moves keys away from their state."""
    if not application.setup.allow_unsafe_expansion or application.record is None:
        return
    if application.has_losses or any(state.missing_partitions for state in application.internal):
        return
    if not any(refused_without_the_switch(application)):
        yield _unneeded_unsafe_expansion(application)


def _unneeded_unsafe_expansion(application: ActiveApplication) -> Problem:
    """Return a hint if the option is in the document: the runtime on Spark and agents read it there.

    The runtime needs it until each task has committed its number of processors with the new partitions.
    """
    switch = application.setup.in_stack.get("allowUnsafeExpansion")
    fix = switch.removal if switch else _REMOVAL
    if switch is None and application.config.autoscaling:
        fix += " Keep it only if an agent must expand the application although its state is lost."
    return application.problem(
        ProblemCode.CONFIG_HAS_NO_EFFECT,
        f"{application.id} has `setup.allowUnsafeExpansion: true`, but no expansion needs it.",
        expected="`setup.allowUnsafeExpansion` only for the `pulumi up` that needs it",
        found=f"no topic to expand, and `{switch.label}: true`" if switch else "no topic to expand",
        why="The next time that source topics are expanded, keys may move away from their state without an "
        "error.",
        fix=fix,
        severity=Severity.WARNING if switch else Severity.INFO,
        at=switch.at if switch else None,
    )


def id_overlap(run: Run) -> Iterator[Problem]:
    """Yield a problem for each recorded id that begins with the other id and a hyphen.

    Documents of the run are compared when they are loaded. An application that is set up already cannot get
    another id without losing its state, so then it is a warning, unless its document accepts the overlap.
    """
    if run.ownership is None:
        return
    declared = {compiled.application.id for compiled in run.compiled}
    others = [each for each in run.ownership.foreign if each.application_id not in declared]
    for application in run.active:
        if application.setup.allow_id_overlap and application.record is not None:
            continue
        for record in others:
            ids = sorted((application.id, record.application_id), key=len)
            if ids[1].startswith(f"{ids[0]}-"):
                yield _overlapping_id(application, record, *ids)


def _overlapping_id(
    application: ActiveApplication, record: OwnershipRecord, shorter: str, longer: str
) -> Problem:
    rest = longer.removeprefix(f"{shorter}-")
    is_accepted = application.setup.allow_id_overlap or application.record is not None
    return application.problem(
        ProblemCode.APPLICATION_ID_OVERLAP,
        f"The internal topics of `{longer}` have names like the internal topics of `{shorter}`.",
        expected=f"an id that does not begin with `{shorter}-`",
        found=f"`{application.id}` here, and `{record.application_id}` in stack {record.stack.name}",
        why=f"A store `{rest}-x` of `{shorter}` and a store `x` of `{longer}` have the same changelog topic. "
        f"Kafka's reset tool for `{shorter}` also deletes the topics of `{longer}`.",
        fix=_overlap_fix(application),
        severity=Severity.WARNING if is_accepted else Severity.ERROR,
    )


def _overlap_fix(application: ActiveApplication) -> str:
    if application.record is not None:
        return (
            "If both are in use already, set `application.setup.allowIdOverlap: true`, which ends this "
            "warning."
        )
    if application.setup.allow_id_overlap:
        return (
            f"Nothing, if both are in use already: the first `pulumi up` ends this warning. Otherwise give "
            f"`{application.id}` another id before its first setup."
        )
    return (
        f"Give `{application.id}` another id before its first setup. If both are in use already, set "
        "`application.setup.allowIdOverlap: true`."
    )


def renumbered_topics(application: ActiveApplication) -> Iterator[Problem]:
    """Like the loss of a topic: `automatic` warns, `manual` refuses."""
    yield from application.renumberings


_REINITIALIZE = (
    "To continue without the state, stop the application and set `setup.reinitialize: true` for one "
    "`pulumi up`."
)
_SHOWN_BY_THE_PLAN = (
    ChangeKind.REFUSED,
    ChangeKind.ACCEPTED,
    ChangeKind.CONFIG,
    ChangeKind.PARTITIONS,
    ChangeKind.NODES,
)


def kafka_streams_changed(application: ActiveApplication) -> Iterator[Problem]:
    """Yield a problem for each change; lost state is an error until `setup.reinitialize` accepts it."""
    upgrade = application.upgrade
    for change in upgrade.changes if upgrade is not None else ():
        is_creation = change.kind is ChangeKind.ADDED_TOPIC and change.state is None
        if upgrade is not None and change.kind not in _SHOWN_BY_THE_PLAN and not is_creation:
            is_refused = change.state is State.LOST and not application.setup.reinitialize
            yield _changed_topic(application, upgrade, change, is_refused=is_refused)


def _changed_topic(
    application: ActiveApplication, upgrade: ApplicationUpgrade, change: Change, *, is_refused: bool
) -> Problem:
    return Problem(
        code=ProblemCode.KAFKA_STREAMS_CHANGED,
        summary=f"Kafka Streams {upgrade.after} instead of {upgrade.before}: {change.what}",
        application=application.id,
        topic=change.topic,
        expected=change.before,
        found=change.after,
        why=change.why,
        fix=change.first.replace(RESET, _REINITIALIZE),
        location=change.location,
        severity=_severity_of_change(change, is_refused=is_refused),
    )


def _severity_of_change(change: Change, *, is_refused: bool) -> Severity:
    if is_refused:
        return Severity.ERROR
    return Severity.INFO if change.severity is Severity.INFO else Severity.WARNING


def version_not_named(application: ActiveApplication) -> Iterator[Problem]:
    """Yield a warning: only a stack knows the version of the last setup."""
    declared = application.compiled.application
    if declared.names_version or declared.kafka_streams == DEFAULT_VERSION:
        return
    yield application.problem(
        ProblemCode.MISSING_DETAIL,
        f"{application.id} names no version of Kafka Streams.",
        expected=f"the version that the application runs, such as "
        f'`kafkaStreams: "{declared.kafka_streams.written}"`',
        found="no `application.kafkaStreams`",
        why=f"The stack continues with {declared.kafka_streams}, the version of its last `pulumi up`. "
        f"Everything that does not read the stack uses {DEFAULT_VERSION}: `headwater compile`, the agent and "
        "`headwater run`.",
        fix="Set `application.kafkaStreams` in the document.",
        severity=Severity.WARNING,
    )
