"""Planning took longer than `setup.timeout` allows."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode
from headwater.planner.application import ActiveApplication


def timeout(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698: `init(timeout)` throws TimeoutException."""
    limit = application.setup.timeout_ms
    if application.elapsed_ms > limit:
        yield application.problem(
            ProblemCode.TIMEOUT,
            f"Planning {application.id} took longer than `setup.timeout`.",
            expected=f"at most {limit:,} ms",
            found=f"{application.elapsed_ms:,} ms",
            why="The data from the cluster may be outdated, so nothing is changed.",
            fix="Check for a slow or overloaded broker, or raise `setup.timeout`.",
        )
