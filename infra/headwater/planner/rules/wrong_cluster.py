"""The stack belongs to another cluster."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode
from headwater.planner.run import Run


def wrong_cluster(run: Run) -> Iterator[Problem]:
    """Yield a problem: on another cluster every recorded topic would seem to be lost."""
    found = run.snapshot.cluster_id
    if run.expected_cluster != found:
        yield Problem(
            code=ProblemCode.WRONG_CLUSTER,
            summary="The brokers belong to another cluster than this stack.",
            expected=f"cluster id {run.expected_cluster}",
            found=f"cluster id {found}",
            why="The setup records describe the other cluster: topics would be created, or reported as lost, "
            "on the wrong cluster.",
            fix="Correct the bootstrap servers, or select the stack of this cluster. If the cluster was "
            "replaced on purpose, set `headwater:clusterId` of the stack to its id.",
        )
