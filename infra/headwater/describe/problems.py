"""Problems of a description text, with line numbers."""

from collections.abc import Sequence

from headwater.describe.lines import LineKind
from headwater.model.problems import Location, Problem, ProblemCode

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
        self,
        line: int,
        summary: str,
        expected: str,
        found: str,
        *,
        node: str | None = None,
        why: str = _WHY,
        fix: str = "Print `topology.describe()` again and copy the complete text.",
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
                    why=why,
                    fix=fix,
                    location=Location(self._file, line, 1 if line else 0),
                )
            )

    def add_too_large(self, size: int, limit: int) -> None:
        self._problems.append(
            Problem(
                code=ProblemCode.DOCUMENT_TOO_LARGE,
                summary="The description text is too large.",
                expected=f"at most {limit} characters",
                found=f"{size} characters",
                why="A text of that size is not the description of a topology; reading it would only "
                "cost time and memory.",
                fix="Remove the text around the description.",
                location=Location(self._file),
            )
        )

    def add_missing_text(self) -> None:
        self.add(0, "The text contains no description of a topology.", "a line `Topologies:`", "none")

    def add_missing_nodes(self) -> None:
        """Add the problem that the description ends after its first line: no application runs such a one."""
        self.add(0, "The description has no sub-topology.", "a line `Sub-topology: 0`, and its nodes", "none")

    def add_unchosen(self, listed: Sequence[str], chosen: str | None) -> None:
        """Add the problem that a text has different topologies and `chosen` is none of them."""
        several = len(listed) > 1
        self.add(
            0,
            f"The text describes no topology {chosen}."
            if chosen is not None
            else f"The text describes {len(listed)} different topologies.",
            "one topology",
            "; ".join(listed),
            why="A document has one topology. Which of them its application runs is not known.",
            fix="Choose one by its number or name: `--topology` of `headwater import`, or "
            "`describe.topology` of a document. Import each application into a document of its own."
            if several
            else "Omit the choice: the text describes one topology.",
        )

    def add_too_old(self, line: int) -> None:
        self.add(
            line,
            "The text is of a version of Kafka Streams before 1.1.",
            "a text of Kafka Streams 1.1 or later, with each list of names on a line of its own",
            "a node with its lists on one line",
            why="Such a version names internal topics differently.",
            fix="Print the text with a later version of Kafka Streams, or declare the topology by its "
            "operators.",
        )

    def add_incomplete_line(self, line: int, kind: LineKind) -> None:
        self.add(
            line,
            f"Line {line} starts like a line of describe() but is incomplete.",
            kind.value,
            "an incomplete line",
        )

    def add_misplaced_line(self, line: int, kind: LineKind, after: str) -> None:
        self.add(line, f"Line {line} is in the wrong position.", after, kind.value)
