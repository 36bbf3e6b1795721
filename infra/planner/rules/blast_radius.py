"""A run would do more than it is allowed to do at once."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.run import Run
from infra.planner.wording import counted


def blast_radius(run: Run) -> Iterator[Problem]:
    """A typing error in a count, or a wrong set of documents, stops here."""
    created = [action for action in run.actions if action.live is None and action.topic is not None]
    added = sum(action.partitions for action in created) + sum(
        action.added_partitions for action in run.actions
    )
    yield from _problem(len(created), run.policy.max_new_topics, "new topic", "maxNewTopics")
    yield from _problem(added, run.policy.max_added_partitions, "new partition", "maxAddedPartitions")


def _problem(number: int, limit: int | None, noun: str, setting: str) -> Iterator[Problem]:
    if limit is not None and number > limit:
        yield Problem(
            code=ProblemCode.BLAST_RADIUS,
            summary=f"This run would make {counted(number, noun)}, more than are allowed at once.",
            expected=f"at most {counted(limit, noun)}",
            found=counted(number, noun),
            why="So many at once are more often a mistake in a document than meant, and load the cluster's "
            "controller.",
            fix=f"Check the plan. If it is meant, raise `{setting}` for this run, or set up the applications "
            "one after another.",
        )
