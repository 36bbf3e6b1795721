"""The application runs while its topics are to be re-initialised or deleted."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.run import Run


def group_active(run: Run) -> Iterator[Problem]:
    """A running application would go on with state that has gone, or create the topics again."""
    for situation in run.active:
        is_asked = situation.is_manual and situation.compiled.application.setup.reinitialize
        if is_asked and situation.is_lossy:
            yield from _problem(run, situation.id, "re-initialised")
    for record in run.retired:
        yield from _problem(run, record.application_id, "retired")


def _problem(run: Run, application_id: str, what: str) -> Iterator[Problem]:
    group = run.snapshot.groups.get(application_id)
    if group is not None and group.is_active:
        yield Problem(
            code=ProblemCode.GROUP_ACTIVE,
            summary=f"{application_id} is to be {what} while it runs.",
            application=application_id,
            expected="a consumer group without members",
            found=f"state {group.state}, {group.members} members",
            why="A running application would go on with half of its state, fail, or create topics again.",
            fix="Stop all instances of the application, wait until its consumer group is empty, and run "
            "again.",
        )
