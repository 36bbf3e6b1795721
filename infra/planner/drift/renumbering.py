"""Topics that go on under another generated name: one finding, not a missing and an orphaned topic."""

from collections.abc import Iterator, Sequence

from infra.compiler.renumbering import renumbering_problems
from infra.model.cluster import ClusterSnapshot
from infra.model.problems import Problem, ProblemCode
from infra.planner.drift.findings import Finding, FindingKind
from infra.planner.plans import ApplicationPlan


def successors(
    part: ApplicationPlan, snapshot: ClusterSnapshot, problems: Sequence[Problem], left: Sequence[str]
) -> tuple[Problem, ...]:
    """Return a problem for each topic that goes on as another: `expected` is the old name, `topic` the new.

    Where nothing is recorded, strays on the cluster stand for what was set up.
    """
    recorded = tuple(problem for problem in problems if problem.code is ProblemCode.RENUMBERED)
    if part.recorded is not None or part.compiled is None:
        return recorded
    live = {topic.name for topic in part.compiled.internal_topics if topic.name in snapshot.topics}
    return renumbering_problems(dict.fromkeys((*left, *live), ""), part.compiled)


def renumbered(moved: Sequence[Problem], part: ApplicationPlan) -> Iterator[Finding]:
    """Yield what `successors` found as findings."""
    for problem in moved:
        yield Finding(
            kind=FindingKind.RENUMBERED,
            severity=problem.severity,
            application=part.application_id,
            topic=problem.topic,
            what=problem.summary,
            expected=problem.expected or "",
            found=problem.found or "",
            why=problem.why,
            fix=problem.fix,
            location=problem.location,
        )
