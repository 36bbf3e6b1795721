"""Topics that no document declares and that may be internal topics of a known application."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

import attrs

from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Severity, errors
from headwater.model.records import SetupRecord
from headwater.model.topology import Lifecycle
from headwater.planner.drift.findings import Finding, FindingKind
from headwater.planner.evidence.names import has_internal_name, internal_prefix
from headwater.planner.evidence.topics import Evidence, TopicEvidence, Verdict
from headwater.planner.phrases import counted
from headwater.planner.plans import ApplicationPlan


def declared_topics(compiled: Sequence[CompiledApplication]) -> frozenset[str]:
    """Return every topic that a document mentions."""
    return frozenset(name for each in compiled for name in _names_of(each))


def undeclared_topics(
    compiled: Sequence[CompiledApplication],
    snapshot: ClusterSnapshot,
    records: Mapping[str, SetupRecord],
    declared: Collection[str],
) -> Mapping[str, Sequence[str]]:
    """Return application id → live topics that look internal to it and that no document declares, sorted.

    A topic belongs to the longest id that its name begins with. There are none for applications whose topics
    are not all known, and for released or removed ones: their topics stay on purpose.
    """
    owners = {f"{id_}-": None for id_ in records} | {
        internal_prefix(each): _owner_of(each) for each in compiled
    }
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(snapshot.topics):
        if name not in declared and has_internal_name(name):
            owner = _longest_owner(name, owners)
            if owner is not None:
                found[owner].append(name)
    return found


def find_orphans(part: ApplicationPlan, left: Sequence[str], evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each undeclared topic, and for each topic that the topology no longer has.

    A topic that another application owns, or that only another client uses, is no finding.
    """
    listed_ones = part.compiled.application.leftovers.names if part.compiled else frozenset()
    recorded = {action.name for action in part.actions if action.topic is None and action.live is not None}
    for name in sorted({*recorded, *left} - listed_ones):
        live = evidence.snapshot.topics[name]
        known = evidence.about_topic(part.application_id, live)
        match known.verdict:
            case Verdict.OWN:
                text = _set_up(known)
            case Verdict.LIKELY:
                text = _left_text(known)
            case Verdict.USED if known.is_created_by_streams:
                text = _used_text(known)
            case Verdict.SUSPECTED | Verdict.UNKNOWN:
                text = _suspected_text(known)
            case _:
                continue
        yield Finding(
            kind=text.kind,
            severity=text.severity,
            application=part.application_id,
            topic=name,
            what=text.what,
            expected=text.expected,
            found=f"{counted(live.partitions, 'partition')}; {known.text}",
            why=text.why,
            fix=text.fix,
            location=part.compiled.application.at if part.compiled else None,
        )


@attrs.frozen(kw_only=True)
class _Text:
    kind: FindingKind
    severity: Severity
    what: str
    expected: str = "no such topic"
    why: str
    fix: str


def _set_up(known: TopicEvidence) -> _Text:
    return _Text(
        kind=FindingKind.ORPHANED,
        severity=Severity.INFO,
        what=f"Topic {known.topic} was set up for {known.application}, whose topology no longer has it.",
        why="It takes up disk space, and another client still reads it."
        if known.readers
        else "It takes up disk space, and the declared topology does not use it.",
        fix=_KEEP if known.readers else f"{_RETIRE} {_KEEP}",
    )


def _left_text(known: TopicEvidence) -> _Text:
    return _Text(
        kind=FindingKind.ORPHANED,
        severity=Severity.WARNING,
        what=f"Topic {known.topic} is an internal topic of {known.application}, and no document declares it.",
        why="Either an earlier topology left it behind, or the running application differs from the "
        "document.",
        fix=f"If the running application uses it, correct the document. {_RETIRE} {_KEEP}",
    )


def _used_text(known: TopicEvidence) -> _Text:
    return _Text(
        kind=FindingKind.SUSPECTED,
        severity=Severity.INFO,
        what=f"Topic {known.topic} may be an internal topic of {known.application}, and another client reads "
        "it.",
        expected="a topic that a document declares",
        why="Whether an earlier topology left it behind is not known. The client that reads it needs it.",
        fix=f"If the running application uses it, correct the document. {_KEEP}",
    )


def _suspected_text(known: TopicEvidence) -> _Text:
    return _Text(
        kind=FindingKind.SUSPECTED,
        severity=Severity.INFO,
        what=f"Topic {known.topic} is named like an internal topic of {known.application}. "
        + (
            "Whose it is, is not known."
            if known.verdict is Verdict.UNKNOWN
            else "Nothing else connects it with the application."
        ),
        expected="more evidence than a name",
        why="A topic of another application or user may have such a name. Headwater does not touch it.",
        fix=f"{_GRANT} {_KEEP}" if known.verdict is Verdict.UNKNOWN else _KEEP,
    )


_RETIRE = (
    "If its data is no longer needed, list it below `leftovers.retire` of the document and run `pulumi up`, "
    "then below `leftovers.delete`: a preview shows each step."
)
_KEEP = "To keep it and not report it again, list it below `leftovers.keep`."
_GRANT = "Grant the user the permissions that are missing, and run again."


def _owner_of(compiled: CompiledApplication) -> str | None:
    application = compiled.application
    is_known = not errors(compiled.problems) and not compiled.missing_sources
    return application.id if is_known and application.lifecycle is Lifecycle.ACTIVE else None


def _names_of(compiled: CompiledApplication) -> Iterator[str]:
    yield from (topic.name for topic in compiled.internal_topics)
    yield from (sink.topic for sink in compiled.sinks)
    yield from compiled.external_sources
    yield from compiled.global_topics
    for part in compiled.subtopologies:
        yield from part.sources
        yield from part.sinks


def _longest_owner(name: str, owners: Mapping[str, str | None]) -> str | None:
    end = name.rfind("-")
    while end >= 0:
        if name[: end + 1] in owners:
            return owners[name[: end + 1]]
        end = name.rfind("-", 0, end)
    return None
