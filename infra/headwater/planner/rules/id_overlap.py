"""The id of an application overlaps with that of an application that another stack records."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.records import OwnershipRecord
from headwater.planner.application import ActiveApplication
from headwater.planner.run import Run


def id_overlap(run: Run) -> Iterator[Problem]:
    """Yield a problem for each recorded id that begins with the other id and a hyphen.

    Documents that are loaded together are compared before. An application that is set up already cannot get
    another id without losing its state, so then it is a warning.
    """
    if run.ownership is None:
        return
    for application in run.active:
        for record in run.ownership.foreign:
            ids = sorted((application.id, record.application_id), key=len)
            if ids[1].startswith(f"{ids[0]}-"):
                yield _problem(application, record, *ids)


def _problem(application: ActiveApplication, record: OwnershipRecord, shorter: str, longer: str) -> Problem:
    rest = longer.removeprefix(f"{shorter}-")
    is_accepted = application.setup.allow_id_overlap or application.record is not None
    return application.problem(
        ProblemCode.APPLICATION_ID_OVERLAP,
        f"The internal topics of `{longer}` have names like those of `{shorter}`.",
        expected=f"an id that does not begin with `{shorter}-`",
        found=f"`{application.id}` here, and `{record.application_id}` in stack {record.stack.name}",
        why=f"A store `{rest}-x` of `{shorter}` and a store `x` of `{longer}` have the same changelog topic. "
        f"Kafka's reset tool for `{shorter}` also deletes the topics of `{longer}`.",
        fix=f"Give `{application.id}` another id before its first setup. If both are in use already, set "
        "`application.setup.allowIdOverlap: true`.",
        severity=Severity.WARNING if is_accepted else Severity.ERROR,
    )
