"""The document names another version of Kafka Streams than at the last setup, and topics change with it."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.application import ActiveApplication
from headwater.planner.upgrade import ApplicationUpgrade, Change, ChangeKind, State
from headwater.planner.upgrade.topics import RESET

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
            yield _problem(application, upgrade, change, is_refused=is_refused)


def _problem(
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
        severity=_severity(change, is_refused=is_refused),
    )


def _severity(change: Change, *, is_refused: bool) -> Severity:
    if is_refused:
        return Severity.ERROR
    return Severity.INFO if change.severity is Severity.INFO else Severity.WARNING
