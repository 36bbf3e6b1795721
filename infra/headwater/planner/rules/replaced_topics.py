"""A topic was deleted and re-created since it was set up."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.application import ActiveApplication, TopicState


def replaced_topics(application: ActiveApplication) -> Iterator[Problem]:
    """Yield problems for topics with another id than recorded. One with records may have been restored.

    A managed sink topic is a warning: the application can continue with another one.
    """
    for state in application.topics:
        if state.is_replaced and state.recorded is not None and state.live is not None:
            # While the application is running, no user restores a topic: new records are its own.
            is_loss = state.is_internal and (state.is_emptied or application.caller.is_running)
            severity = Severity.ERROR if is_loss and not application.accepts_loss else Severity.WARNING
            ids = (state.recorded.topic_id, state.live.topic_id)
            yield _problem(application, state, ids, severity)


def _problem(
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
        fix=_fix(application, severity) if state.is_internal else _SINK,
        severity=severity,
    )


def _fix(application: ActiveApplication, severity: Severity) -> str:
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
    return (
        "Restore the topic from a backup. To continue without its data, stop the application and set "
        "`setup.reinitialize: true` for one `pulumi up`."
    )


_SINK = (
    "Make sure that the new topic is meant for this application. If it belongs to another one, remove it "
    "from the document, or write to another topic."
)
