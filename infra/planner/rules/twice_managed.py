"""Two applications manage the same topic."""

from collections import defaultdict
from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.phrases import listed
from infra.planner.run import Run


def twice_managed(run: Run) -> Iterator[Problem]:
    """Yield a problem for each topic: each application would undo the changes of the other."""
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for application in run.active:
        for state in application.topics:
            owners[state.name].append(application.id)
    for topic, applications in sorted(owners.items()):
        if len(applications) > 1:
            yield Problem(
                code=ProblemCode.CONFLICTING_PARTITIONS,
                summary=f"Topic {topic} is managed by more than one application.",
                topic=topic,
                expected="one application that manages it",
                found=listed(applications),
                why="Each application would set its own partition count and settings, and undo those of the "
                "other.",
                fix="Declare the topic in the document of one of them. The others may still write to it.",
            )
