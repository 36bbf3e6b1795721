"""An application that was set up has no document any more."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.run import Run
from infra.planner.wording import counted, listed


def application_removed(run: Run) -> Iterator[Problem]:
    """Nothing is deleted because a file is: an application is released or retired in so many words."""
    if not run.policy.are_documents_complete:
        return
    for record in run.removed:
        if not record.retired:
            yield Problem(
                code=ProblemCode.APPLICATION_REMOVED,
                summary=f"Application {record.application_id} was set up and has no document any more.",
                application=record.application_id,
                expected="a document for each application that was set up",
                found=f"none; {counted(len(record.topics), 'topic')}: {listed(record.topics) or 'none'}",
                why="A file that is moved or lost must not delete topics and the state in them.",
                fix="Bring the document back. To let go of the application, bring it back with `lifecycle: "
                "released` (its topics stay) or `lifecycle: retired` (its internal topics are deleted once "
                "the document is removed after the next run). If it got another id, name the old one as "
                "`renamedFrom`.",
            )
