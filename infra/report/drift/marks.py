"""What a picture shows at a topic that differs."""

from collections.abc import Iterable, Mapping

import attrs

from infra.model.problems import Severity
from infra.planner.drift import Finding, FindingKind

_WORDS = {
    FindingKind.RENUMBERED: ("renumbered", "moved"),
    FindingKind.MISSING: ("missing", "missing"),
    FindingKind.RECREATED: ("created anew", "anew"),
    FindingKind.REPLICATION_FACTOR: ("other replication", "replicas"),
    FindingKind.CONFIG: ("other settings", "settings"),
    FindingKind.ORPHANED: ("declared nowhere", "orphan"),
}
_ORDER = list(Severity)


@attrs.frozen
class Mark:
    """`css` is a class, `note` and `short` say what differs, `anchor` is where it is told in full."""

    css: str
    note: str
    short: str
    anchor: str


def marks(findings: Iterable[tuple[str, Finding]]) -> Mapping[str, Mark]:
    """Return topic → the mark of its worst finding; the findings come with the anchors of their texts."""
    found: dict[str, Mark] = {}
    for anchor, finding in sorted(findings, key=lambda pair: _ORDER.index(pair[1].severity)):
        if finding.topic is not None:
            note, short = _WORDS.get(finding.kind) or _counts(finding)
            mark = Mark(f"drift-{finding.severity.value}", note, short, anchor)
            found.setdefault(finding.topic, mark)
    return found


def _counts(finding: Finding) -> tuple[str, str]:
    live, declared = finding.found.partition(" ")[0], finding.expected.partition(" ")[0]
    return f"{live} instead of {declared}", f"{live} ≠ {declared}"
