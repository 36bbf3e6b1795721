"""What the documents require of the cluster, compiled again only when an input has changed."""

from collections.abc import Mapping

from headwater.agent.state import Requirements, TopicCounts
from headwater.compiler import compile_documents
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import AGENT
from headwater.model.topology import Lifecycle, TopologyDocument


def requirements(
    documents: tuple[TopologyDocument, ...], counts: TopicCounts, before: Requirements
) -> Requirements:
    """Return what active documents require with these counts; `before` itself if no input has changed."""
    if before.documents is documents and _relevant(before.applications, counts) == before.counts:
        return before
    active = [document for document in documents if document.application.lifecycle is Lifecycle.ACTIVE]
    applications = compile_documents(active, counts, AGENT)
    return Requirements(documents, _relevant(applications, counts), applications)


def inputs_of_fewer(
    applications: tuple[CompiledApplication, ...], counts: TopicCounts
) -> Mapping[str, TopicCounts]:
    """Return application → the inputs of its processors, where some of these may have been removed (KIP-287).

    So it is if a changelog topic has more partitions than processors are declared.
    """
    found: dict[str, TopicCounts] = {}
    for application in applications:
        parts = [part for part in application.subtopologies if part.processors is not None]
        changelogs = {name: part.processors or 0 for part in parts for name in part.changelog_topics}
        if any(counts.get(name, 0) > declared for name, declared in changelogs.items()):
            inputs = sorted({name for part in parts for name in part.sources if name in counts})
            found[application.application.id] = {name: counts[name] for name in inputs}
    return found


def _relevant(applications: tuple[CompiledApplication, ...], counts: TopicCounts) -> TopicCounts:
    """Return the counts that the result can depend on: patterns match any topic except internal ones."""
    if any(application.source_patterns for application in applications):
        internal = {topic.name for application in applications for topic in application.internal_topics}
        return {name: count for name, count in counts.items() if name not in internal}
    names = {
        name
        for application in applications
        for name in (
            *application.external_sources,
            *application.missing_sources,
            *application.global_topics,
            *(sink.topic for sink in application.sinks),
        )
    }
    return {name: counts[name] for name in names if name in counts}
