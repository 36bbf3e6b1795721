"""Two applications claim the same topic."""

from collections import defaultdict
from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.run import Run
from infra.planner.wording import listed


def twice_managed(run: Run) -> Iterator[Problem]:
    """Each would undo what the other does to it."""
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
                why="Each application would set its own partition count and settings, and undo the other's.",
                fix="Declare the topic in the document of one of them; the others may write to it all the "
                "same.",
            )
