"""A drift as an HTML page and as JUnit's XML.

A difference that a policy tolerates is no failure.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import attrs

from headwater.model.problems import Problem, Severity
from headwater.planner.drift import ApplicationDrift, Drift, Finding, FindingKind
from headwater.report.drift.texts import Group, application_summary, group_findings
from headwater.report.graph import build_graph
from headwater.report.layout import Layout, layout_graph
from headwater.report.problems import SEVERITY_NOUNS, problem_text
from headwater.report.templating import load_template


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
    return load_template("drift.junit.xml.j2").render(
        suites=[_Suite(part.id, tuple(_cases_of(part))) for part in drift.applications],
        problems=list(_named_problems(drift.problems)),
    )


def _named_problems(problems: Iterable[Problem]) -> Iterator[tuple[Problem, str, str, str]]:
    """Yield each problem with the class name, name and text of its case.

    Of several cases with the same names, GitLab shows one.
    """
    seen: Counter[tuple[str, str]] = Counter()
    for problem in problems:
        key = (problem.application or "plan", problem.topic or problem.code.value)
        seen[key] += 1
        number = f" ({seen[key]})" if seen[key] > 1 else ""
        yield problem, key[0], f"{key[1]}{number}", problem_text(problem)


def _cases_of(part: ApplicationDrift) -> Iterator[_Case]:
    """Yield a case for each topic, declared or found, and one for findings about the whole application."""
    findings: defaultdict[str | None, list[Finding]] = defaultdict(list)
    for finding in part.findings:
        if finding.counts and finding.is_difference:
            findings[finding.topic].append(finding)
    for name in sorted({*part.topics, *part.drifted}):
        yield _Case(name, tuple(findings[name]))
    if findings[None]:
        yield _Case(part.id, tuple(findings[None]))


_MOST_PARTS = 150
"""The most sub-topologies that a picture shows legibly."""
_MARK_TEXTS = {
    FindingKind.RENUMBERED: ("renumbered", "renumbered"),
    FindingKind.MISSING: ("missing", "missing"),
    FindingKind.RECREATED: ("re-created", "re-created"),
    FindingKind.REPLICATION_FACTOR: ("different replication", "replicas"),
    FindingKind.CONFIG: ("different settings", "settings"),
    FindingKind.ORPHANED: ("not declared", "orphan"),
    FindingKind.SUSPECTED: ("suspected", "suspected"),
}
_SEVERITIES = list(Severity)


@attrs.frozen
class Mark:
    """What a picture shows at a topic that differs.

    `css` is a class, `note` and `short` say what differs, `anchor` is the id of the card with the details.
    """

    css: str
    note: str
    short: str
    anchor: str


@attrs.frozen
class Card:
    """A group of findings and the anchor that pictures link to."""

    group: Group
    anchor: str

    @property
    def level(self) -> str:
        return self.group.severity.value

    @property
    def noun(self) -> str:
        return SEVERITY_NOUNS[self.group.severity]


@attrs.frozen
class Section:
    """One application; `picture` is None if it would show too many sub-topologies."""

    part: ApplicationDrift
    anchor: str
    summary: str
    cards: Sequence[Card]
    picture: Layout | None
    marks: Mapping[str, Mark]

    @property
    def level(self) -> str:
        """The severity of the most severe finding, or `ok`."""
        return self.cards[0].level if self.cards else "ok"

    @property
    def noun(self) -> str:
        """The level in words; empty if there is no finding."""
        return self.cards[0].noun if self.cards else ""


def drift_page(drift: Drift, at: datetime | None = None) -> str:
    """Return the HTML text; `at` is the time at which the cluster was read."""
    sections = sorted(_sections_of(drift), key=lambda section: _LEVELS.index(section.level))
    findings = drift.differences
    counts = [
        (severity.value, SEVERITY_NOUNS[severity], sum(f.severity is severity for f in findings))
        for severity in Severity
    ]
    drifted = {(part.id, name) for part in drift.applications for name in part.drifted & {*part.topics}}
    topics = sum(len(part.topics) for part in drift.applications)
    return load_template("drift.html.j2").render(
        drift=drift,
        sections=sections,
        counts=counts,
        topics=topics,
        clean=topics - len(drifted),
        findings=len(findings),
        at=at,
        details=_details_of,
    )


_LEVELS = ("error", "warning", "info", "ok")


def _sections_of(drift: Drift) -> Iterator[Section]:
    for number, part in enumerate(drift.applications):
        cards = tuple(
            Card(group, f"a{number}-{index}") for index, group in enumerate(group_findings(part.findings))
        )
        is_shown = len(part.compiled.subtopologies) <= _MOST_PARTS
        yield Section(
            part=part,
            anchor=f"a{number}",
            summary=application_summary(part),
            cards=cards,
            picture=layout_graph(part.id, build_graph([part.compiled], drift.partitions))
            if is_shown
            else None,
            marks=_marks_of((card.anchor, finding) for card in cards for finding in card.group.findings),
        )


def _marks_of(findings: Iterable[tuple[str, Finding]]) -> Mapping[str, Mark]:
    """Return topic → the mark of its most severe finding; `findings` come with the anchors of their cards."""
    found: dict[str, Mark] = {}
    for anchor, finding in sorted(findings, key=lambda pair: _SEVERITIES.index(pair[1].severity)):
        if finding.topic is not None:
            note, short = _MARK_TEXTS.get(finding.kind) or _counts_of(finding)
            mark = Mark(f"drift-{finding.severity.value}", note, short, anchor)
            found.setdefault(finding.topic, mark)
    return found


def _counts_of(finding: Finding) -> tuple[str, str]:
    live, declared = finding.found.partition(" ")[0], finding.expected.partition(" ")[0]
    return f"{live} instead of {declared}", f"{live} ≠ {declared}"


def _details_of(problem: Problem) -> list[tuple[str, str]]:
    details = (
        ("topic", problem.topic),
        ("declared", problem.expected),
        ("found", problem.found),
        ("where", str(problem.location) if problem.location else None),
    )
    return [(label, text) for label, text in details if text]
