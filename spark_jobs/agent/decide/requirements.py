"""The partition counts that the documents require, compiled again only when an input has changed."""

from infra.compiler import compile_documents
from infra.model.callers import AGENT
from infra.model.compiled import CompiledApplication
from infra.model.topology import Lifecycle, TopologyDocument
from spark_jobs.agent.state import Requirements, TopicCounts


def requirements(
    documents: tuple[TopologyDocument, ...], counts: TopicCounts, before: Requirements
) -> Requirements:
    """Return what active documents require with these counts; `before` itself if no input has changed."""
    if before.documents is documents and _relevant(before.applications, counts) == before.counts:
        return before
    active = [document for document in documents if document.application.lifecycle is Lifecycle.ACTIVE]
    applications = compile_documents(active, counts, AGENT)
    return Requirements(documents, _relevant(applications, counts), applications)


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
