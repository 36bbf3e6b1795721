"""Problems of a description text, with line numbers."""

from collections.abc import Sequence

from infra.describe.lines import LineKind
from infra.model.problems import Location, Problem, ProblemCode

_WHY = "An incomplete description gives wrong sub-topologies and partition counts."
_MOST_REPORTED = 100
"""Further problems of one text are not reported."""


class TextProblems:
    """Collects the problems of one text in `file`."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._problems: list[Problem] = []

    @property
    def found(self) -> tuple[Problem, ...]:
        return tuple(self._problems)

    def add(
        self, line: int, summary: str, expected: str, found: str, *, node: str | None = None, fix: str = ""
    ) -> None:
        """Add a problem at `line`; 0 = the whole text."""
        if len(self._problems) < _MOST_REPORTED:
            self._problems.append(
                Problem(
                    code=ProblemCode.UNREADABLE_DESCRIBE,
                    summary=summary,
                    node=node,
                    expected=expected,
                    found=found,
                    why=_WHY,
                    fix=fix or "Print `topology.describe()` again and copy the complete text.",
                    location=Location(self._file, line, 1 if line else 0),
                )
            )

    def too_large(self, size: int, limit: int) -> None:
        self._problems.append(
            Problem(
                code=ProblemCode.DOCUMENT_TOO_LARGE,
                summary="The description text is too large.",
                expected=f"at most {limit} characters",
                found=f"{size} characters",
                why=(
                    "A text of that size is not the description of a topology; reading it would only "
                    "cost time and memory."
                ),
                fix="Remove the text around the description.",
                location=Location(self._file),
            )
        )

    def nothing(self) -> None:
        self.add(0, "The text contains no description of a topology.", "a line `Topologies:`", "none")

    def several(self, names: Sequence[str | None]) -> None:
        named = [name for name in names if name is not None]
        self.add(
            0,
            f"The text describes {len(names)} topologies.",
            "one topology",
            ", ".join(named) or f"{len(names)} different descriptions",
            fix="Keep the description of one topology; named topologies are imported one by one.",
        )

    def broken(self, line: int, kind: LineKind) -> None:
        self.add(
            line,
            f"Line {line} starts like a line of describe() but is incomplete.",
            kind.value,
            "an incomplete line",
        )

    def misplaced(self, line: int, kind: LineKind, after: str) -> None:
        self.add(line, f"Line {line} is in the wrong position.", after, kind.value)
