"""The stack belongs to another cluster."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.run import Run


def wrong_cluster(run: Run) -> Iterator[Problem]:
    """On another cluster every recorded topic would look lost."""
    expected, found = run.policy.cluster_id, run.snapshot.cluster_id
    if expected is not None and expected != found:
        yield Problem(
            code=ProblemCode.WRONG_CLUSTER,
            summary="The brokers belong to another cluster than this stack.",
            expected=f"cluster id {expected}",
            found=f"cluster id {found}",
            why="The recorded set-up describes the other cluster: topics would be created, or missed, in the "
            "wrong place.",
            fix="Correct the bootstrap servers, or select the stack of this cluster. If the cluster was "
            "replaced on purpose, set its id as `clusterId` of the stack.",
        )
