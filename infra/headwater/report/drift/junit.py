"""A drift as JUnit XML: a suite for each application, a case for each topic, failed if it differs.

A difference that a policy tolerates is no failure.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import attrs

from headwater.planner.drift import ApplicationDrift, Drift, Finding
from headwater.report.problem_text import problem_text
from headwater.report.templating import template


@attrs.frozen
class _Case:
    name: str
    findings: tuple[Finding, ...]

    @property
    def text(self) -> str:
        """All findings in one text, because a JUnit case has one failure."""
        return "\n\n".join(
            f"{finding.what}\nexpected: {finding.expected}\nfound: {finding.found}\n"
            f"why: {finding.why}\nfix: {finding.fix}"
            for finding in self.findings
        )


@attrs.frozen
class _Suite:
    name: str
    cases: Sequence[_Case]

    @property
    def size(self) -> int:
        return len(self.cases)

    @property
    def failures(self) -> int:
        return sum(bool(case.findings) for case in self.cases)


def drift_junit(drift: Drift) -> str:
    """Return the XML text."""
    return template("drift.junit.xml.j2").render(
        suites=[_Suite(part.id, tuple(_cases(part))) for part in drift.applications],
        problems=[(problem, problem_text(problem)) for problem in drift.problems],
    )


def _cases(part: ApplicationDrift) -> Iterator[_Case]:
    """Yield a case for each topic, declared or found, and one for findings about the whole application."""
    findings: defaultdict[str | None, list[Finding]] = defaultdict(list)
    for finding in part.findings:
        if finding.counts and finding.is_difference:
            findings[finding.topic].append(finding)
    for name in sorted({*part.topics, *part.drifted}):
        yield _Case(name, tuple(findings[name]))
    if findings[None]:
        yield _Case(part.id, tuple(findings[None]))
