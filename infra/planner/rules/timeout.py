"""Loading and reading took longer than planning may take."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.situation import Situation


def timeout(situation: Situation) -> Iterator[Problem]:
    """KIP-698, `init(timeout)`: TimeoutException."""
    limit = situation.compiled.application.setup.timeout_ms
    if situation.elapsed_ms > limit:
        yield situation.problem(
            ProblemCode.TIMEOUT,
            f"Planning {situation.id} took longer than it may.",
            expected=f"at most {limit:,} ms",
            found=f"{situation.elapsed_ms:,} ms",
            why="What was read from the cluster may be out of date by now, so nothing is changed on its "
            "ground.",
            fix="Look for a slow or overloaded broker, or raise `setup.timeout`.",
        )
