"""An application was set up and its document was removed."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode
from headwater.planner.phrases import counted, listed
from headwater.planner.run import Run


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
