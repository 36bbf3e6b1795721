"""A drift as one HTML page: nothing is loaded from elsewhere, nothing is scripted, everything is escaped."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import attrs

from infra.model.problems import Problem, Severity
from infra.planner.drift import ApplicationDrift, Drift
from infra.report.drift.groups import Group, groups
from infra.report.drift.marks import Mark, marks
from infra.report.drift.summary import SEVERITY_NOUNS, standing
from infra.report.graph import graph
from infra.report.layout import Layout, layout
from infra.report.printable import printable
from infra.report.templating import template

_MOST_PARTS = 150
"""Sub-topologies of a picture that people still make out something in."""


@attrs.frozen
class Card:
    """A group of findings with the place that pictures link to."""

    group: Group
    anchor: str

    @property
    def level(self) -> str:
        return self.group.severity.value

    @property
    def word(self) -> str:
        return SEVERITY_NOUNS[self.group.severity]


@attrs.frozen
class Section:
    """One application; `picture` is None when it would show too much to show anything."""

    part: ApplicationDrift
    anchor: str
    standing: str
    cards: Sequence[Card]
    picture: Layout | None
    marks: Mapping[str, Mark]

    @property
    def level(self) -> str:
        """That of the worst finding."""
        return self.cards[0].level if self.cards else "ok"


def drift_page(drift: Drift, at: datetime | None = None) -> str:
    """Return the HTML text; `at` is when the cluster was read."""
    sections = sorted(_sections(drift), key=lambda section: _LEVELS.index(section.level))
    findings = tuple(drift.findings)
    counts = [
        (severity.value, SEVERITY_NOUNS[severity], sum(f.severity is severity for f in findings))
        for severity in Severity
    ]
    drifted = {(part.id, name) for part in drift.applications for name in part.drifted & {*part.topics}}
    topics = sum(len(part.topics) for part in drift.applications)
    return template("drift.html.j2").render(
        drift=drift,
        sections=sections,
        counts=counts,
        topics=topics,
        clean=topics - len(drifted),
        findings=len(findings),
        at=at,
        words=_words,
        details=_details,
    )


_LEVELS = ("error", "warning", "info", "ok")


def _sections(drift: Drift) -> Iterator[Section]:
    for number, part in enumerate(drift.applications):
        cards = tuple(Card(group, f"a{number}-{place}") for place, group in enumerate(groups(part.findings)))
        is_shown = len(part.compiled.subtopologies) <= _MOST_PARTS
        yield Section(
            part=part,
            anchor=f"a{number}",
            standing=standing(part),
            cards=cards,
            picture=layout(part.id, graph([part.compiled], drift.partitions)) if is_shown else None,
            marks=marks((card.anchor, finding) for card in cards for finding in card.group.findings),
        )


def _words(text: str) -> list[tuple[bool, str]]:
    """Split a sentence into what is code, between backticks, and what is not."""
    return [(number % 2 == 1, part) for number, part in enumerate(re.split(r"`([^`]*)`", printable(text)))]


def _details(problem: Problem) -> list[tuple[str, str]]:
    said = (
        ("topic", problem.topic),
        ("declared", problem.expected),
        ("found", problem.found),
        ("where", str(problem.location) if problem.location else None),
    )
    return [(label, text) for label, text in said if text]
