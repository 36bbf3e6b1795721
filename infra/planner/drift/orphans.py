"""Topics that look internal to a known application and that no document declares."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from infra.compiler.streams_config import StreamsConfig
from infra.model.cluster import ClusterSnapshot
from infra.model.compiled import CompiledApplication
from infra.model.problems import Severity, errors
from infra.model.record import SetupRecord
from infra.model.topology import Lifecycle
from infra.planner.drift.findings import Finding, FindingKind
from infra.planner.phrases import counted
from infra.planner.plans import ApplicationPlan

_SUFFIXES = (
    "-changelog",
    "-repartition",
    "-subscription-registration-topic",
    "-subscription-response-topic",
)
_FOREIGN_KEY = re.compile(r".+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic", re.DOTALL)


def has_internal_name(name: str) -> bool:
    """Return whether the name ends as `StreamsResetter#matchesInternalTopicFormat` requires."""
    return name.endswith(_SUFFIXES) or _FOREIGN_KEY.fullmatch(name) is not None


def declared_topics(compiled: Sequence[CompiledApplication]) -> frozenset[str]:
    """Return every topic that a document mentions."""
    return frozenset(name for each in compiled for name in _names(each))


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
    owners = {f"{id_}-": None for id_ in records} | {prefix(each): _owner(each) for each in compiled}
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(snapshot.topics):
        if name not in declared and has_internal_name(name):
            owner = _longest(name, owners)
            if owner is not None:
                found[owner].append(name)
    return found


def prefix(compiled: CompiledApplication) -> str:
    """Return what the names of the application's internal topics begin with."""
    return f"{StreamsConfig.of(compiled.application).topic_prefix or compiled.application.id}-"


def orphaned(part: ApplicationPlan, left: Sequence[str], snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Yield a finding for each undeclared topic, and for each topic that the topology no longer has."""
    recorded = {action.name for action in part.actions if action.topic is None and action.live is not None}
    for name in sorted({*recorded, *left}):
        was_ours = name in recorded
        yield Finding(
            kind=FindingKind.ORPHANED,
            severity=Severity.INFO if was_ours else Severity.WARNING,
            application=part.application_id,
            topic=name,
            what=f"Topic {name} was set up for {part.application_id}, whose topology no longer has it."
            if was_ours
            else f"Topic {name} looks internal to {part.application_id}, and no document declares it.",
            expected="no such topic",
            found=counted(snapshot.topics[name].partitions, "partition"),
            why="It takes up disk space and nothing reads it."
            if was_ours
            else "Either an earlier topology left it behind, or the running application differs from the "
            "document.",
            fix=("" if was_ours else "If the running application uses it, correct the document. ")
            + "If its data is no longer needed, delete it: `kafka-topics.sh --bootstrap-server BROKER "
            f"--delete --topic {name}`.",
            location=part.compiled.application.at if part.compiled else None,
        )


def _owner(compiled: CompiledApplication) -> str | None:
    application = compiled.application
    is_known = not errors(compiled.problems) and not compiled.missing_sources
    return application.id if is_known and application.lifecycle is Lifecycle.ACTIVE else None


def _names(compiled: CompiledApplication) -> Iterator[str]:
    yield from (topic.name for topic in compiled.internal_topics)
    yield from (sink.topic for sink in compiled.sinks)
    yield from compiled.external_sources
    yield from compiled.global_topics
    for part in compiled.subtopologies:
        yield from part.sources
        yield from part.sinks


def _longest(name: str, owners: Mapping[str, str | None]) -> str | None:
    end = name.rfind("-")
    while end >= 0:
        if name[: end + 1] in owners:
            return owners[name[: end + 1]]
        end = name.rfind("-", 0, end)
    return None
