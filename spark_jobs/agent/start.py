"""Start an agent with its endpoint and log, from the options of its command line."""

import socket
from collections.abc import Sequence
from pathlib import Path

import attrs
import structlog

from spark_jobs.agent.coordination import DEFAULT_SESSION_TIMEOUT_MS
from spark_jobs.agent.document_files import DocumentFiles
from spark_jobs.agent.endpoint import serve
from spark_jobs.agent.manifest import ManifestFile
from spark_jobs.agent.run import Agent, AgentSettings, coordination_of
from spark_jobs.agent.system_clock import SystemClock
from spark_jobs.command_line import JobOptions

_log = structlog.get_logger(__name__)


def default_client_id() -> str:
    return f"headwater-agent-{socket.gethostname()}"


@attrs.frozen(kw_only=True)
class AgentOptions(JobOptions):
    """Either `files` (documents) or a `manifest`. Durations are milliseconds; None: as the documents say."""

    files: Sequence[Path] = ()
    manifest: Path | None = None
    client_id: str = attrs.field(factory=default_client_id)
    group: str = "default"
    metadata_max_age_ms: int | None = None
    settle_ms: int = 10_000
    request_timeout_ms: int = 10_000
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    callback: str | None = None
    once: bool = False


def start(options: AgentOptions) -> bool:
    """Run an agent to its end; return whether it ended as it should.

    Raises `ProblemsError` before anything is done: documents or settings are wrong.
    """
    options.configure_log()
    settings = AgentSettings(
        connection=options.connection,
        documents=DocumentFiles(options.files)
        if options.manifest is None
        else ManifestFile(options.manifest),
        client_id=options.client_id,
        group=options.group,
        metadata_max_age_ms=options.metadata_max_age_ms,
        settle_ms=options.settle_ms,
        request_timeout_ms=options.request_timeout_ms,
        session_timeout_ms=options.session_timeout_ms,
        callback=options.callback,
    )
    access = options.access()
    clock, coordination = SystemClock(), coordination_of(settings)
    with serve(
        options.connection,
        settings.documents,
        options.client_id,
        access,
        wake=clock.wake,
        trouble=lambda: coordination.leadership.trouble,
    ) as endpoint:
        agent = Agent(
            attrs.evolve(settings, documents=endpoint.documents), endpoint.instruments, coordination, clock
        )
        with agent.signals():
            _log.info(
                "agent started", client_id=options.client_id, group=options.group, endpoint=endpoint.url
            )
            if options.once:
                return agent.run_once()
            agent.run()
    _log.info("agent ended", client_id=options.client_id)
    return True
