"""Loading and reading took longer than planning may take."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.application import ActiveApplication


def timeout(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698, `init(timeout)`: TimeoutException."""
    limit = application.setup.timeout_ms
    if application.elapsed_ms > limit:
        yield application.problem(
            ProblemCode.TIMEOUT,
            f"Planning {application.id} took longer than it may.",
            expected=f"at most {limit:,} ms",
            found=f"{application.elapsed_ms:,} ms",
            why="What was read from the cluster may be out of date by now, so nothing is changed on its "
            "ground.",
            fix="Look for a slow or overloaded broker, or raise `setup.timeout`.",
        )
