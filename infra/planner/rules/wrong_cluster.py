"""The stack belongs to another cluster."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.run import Run


def wrong_cluster(run: Run) -> Iterator[Problem]:
    """Yield a problem: on another cluster every recorded topic would seem to be lost.

    The stack's `clusterId` has priority over the setup records, so that a move can be declared.
    """
    found = run.snapshot.cluster_id
    recorded = sorted({record.cluster_id for record in run.records.values() if record.cluster_id})
    expected = run.policy.cluster_id or next((id_ for id_ in recorded if id_ != found), found)
    if expected != found:
        yield Problem(
            code=ProblemCode.WRONG_CLUSTER,
            summary="The brokers belong to another cluster than this stack.",
            expected=f"cluster id {expected}",
            found=f"cluster id {found}",
            why="The setup records describe the other cluster: topics would be created, or reported as lost, "
            "on the wrong cluster.",
            fix="Correct the bootstrap servers, or select the stack of this cluster. If the cluster was "
            "replaced on purpose, set `headwater:clusterId` of the stack to its id.",
        )
