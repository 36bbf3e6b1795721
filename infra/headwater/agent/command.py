"""The options of an agent, and its start."""

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import attrs
import click
import structlog

from headwater.agent.documents import DocumentFiles, SwitchedDocuments
from headwater.agent.instruments import AgentInstruments
from headwater.agent.lag import LagWatch, consumed_topics
from headwater.agent.leadership import DEFAULT_SESSION_TIMEOUT_MS
from headwater.agent.manifest import ManifestFile
from headwater.agent.ports import Documents
from headwater.agent.run import Agent, AgentSettings, SystemClock, coordination_of
from headwater.command_line import (
    GatewayWatch,
    JobOptions,
    Termination,
    all_of,
    gateway_port_of,
    job_options,
    spark_ended,
)
from headwater.control import Access, ControlServer, Surface
from headwater.control.logs import LogFormat
from headwater.kafka import Connection
from headwater.kafka.command_line import AgentGroup, NamedPath
from headwater.model.problems import Problem, ProblemsError
from headwater.spec.policies import read_policies

_log = structlog.get_logger(__name__)
F = TypeVar("F", bound=Callable[..., Any])
_MILLISECONDS = click.IntRange(min=1)


def _default_client_id() -> str:
    """Return a client id that names this host."""
    return f"headwater-agent-{socket.gethostname()}"


@attrs.frozen(kw_only=True)
class AgentOptions(JobOptions):
    """The options of an agent: either `files` (documents) or a `manifest`. Durations are milliseconds.

    `metadata_max_age_ms` None: the least value of the documents.
    """

    files: Sequence[Path] = ()
    manifest: Path | None = None
    client_id: str = attrs.field(factory=_default_client_id)
    group: str = "default"
    metadata_max_age_ms: int | None = None
    settle_ms: int = 10_000
    request_timeout_ms: int = 10_000
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    callback: str | None = None
    once: bool = False


def agent_options(log_format: LogFormat) -> Callable[[F], F]:
    """Return a decorator that adds the arguments and options that `run_agent` takes."""
    return all_of(
        click.argument("files", nargs=-1, type=NamedPath(path_type=Path), metavar="[FILES]..."),
        click.option(
            "--manifest",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Read this manifest instead of FILES (see `headwater agent manifest`).",
        ),
        click.option(
            "--client-id", metavar="ID", help="Name of this agent in metrics and history; default: by host."
        ),
        click.option(
            "--group",
            type=AgentGroup(),
            default="default",
            show_default=True,
            help="Agents of one group share their work: one of them leads.",
        ),
        click.option(
            "--metadata-max-age-ms",
            type=_MILLISECONDS,
            help="Interval between two reads of the cluster; default: the least metadata.max.age.ms of the "
            "applications.",
        ),
        click.option(
            "--follow-up-ms",
            type=_MILLISECONDS,
            default=10_000,
            show_default=True,
            help="Time from the last success to the final read of the cluster, and the callback.",
        ),
        click.option(
            "--request-timeout-ms",
            type=_MILLISECONDS,
            default=10_000,
            show_default=True,
            help="Timeout of admin requests.",
        ),
        click.option(
            "--session-timeout-ms",
            type=_MILLISECONDS,
            default=10_000,
            show_default=True,
            help="Time without heartbeats after which another agent leads.",
        ),
        click.option(
            "--callback",
            metavar="MODULE:CLASS",
            help="Class whose on_partition_expansion(old, new) is called; default: the "
            "static.partitioner.class of each application.",
        ),
        click.option(
            "--once",
            is_flag=True,
            help="Expand what is necessary, then stop; exit code 1 if a topic is missing or too small.",
        ),
        job_options(
            cluster="The cluster whose topics are expanded.",
            http="Serve metrics, health, status and control at this address.",
            log_format=log_format,
        ),
    )


def run_agent(options: Mapping[str, Any]) -> int:
    """Run an agent until it is stopped and return the exit code: 0, or 1 if topics are not expanded.

    `options` are the values of `agent_options` by name. Raises `ProblemsError` and `click.UsageError`.
    """
    if bool(options["files"]) == (options["manifest"] is not None):
        raise click.UsageError("Name FILES, or one manifest by --manifest.")
    succeeded = start(
        AgentOptions(
            files=options["files"],
            manifest=options["manifest"],
            connection=options["cluster"].connection(),
            client_id=options["client_id"] or _default_client_id(),
            group=options["group"],
            metadata_max_age_ms=options["metadata_max_age_ms"],
            settle_ms=options["follow_up_ms"],
            request_timeout_ms=options["request_timeout_ms"],
            session_timeout_ms=options["session_timeout_ms"],
            callback=options["callback"],
            http=options["http"],
            log_format=options["log_format"],
            log_level=options["log_level"],
            stop_timeout_ms=options["stop_timeout_ms"],
            once=options["once"],
            policy_files=options["policy_files"],
        )
    )
    return 0 if succeeded else 1


def start(options: AgentOptions) -> bool:
    """Run an agent until it is stopped; return whether it succeeded.

    Raises `ProblemsError` before any change if documents or settings have errors.
    """
    options.configure_log()
    port = gateway_port_of(os.environ)
    gateway = GatewayWatch(port) if port is not None else None
    succeeded = True  # also if SIGTERM arrives before the agent runs
    with (
        Termination(options.client_id, options.stop_timeout_ms / 1_000) as termination,
        gateway or nullcontext(),
    ):
        succeeded = _run_until_stopped(options, termination, gateway)
    if gateway is not None and gateway.has_ended() and not termination.is_requested():
        raise ProblemsError([spark_ended(options.client_id, "the connection to its gateway was closed")])
    _log.info("agent ended", client_id=options.client_id)
    return succeeded


def _run_until_stopped(options: AgentOptions, termination: Termination, gateway: GatewayWatch | None) -> bool:
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
        policies=read_policies(options.policy_files),
    )
    access = options.access()
    clock, coordination = SystemClock(), coordination_of(settings)
    with serve(
        options.connection,
        settings.documents,
        options.client_id,
        access,
        wake=clock.wake,
        election_error=lambda: coordination.leadership.error,
        journal_problems=lambda: coordination.journal.problems,
    ) as endpoint:
        agent = Agent(
            attrs.evolve(settings, documents=endpoint.documents), endpoint.instruments, coordination, clock
        )
        if gateway is not None:
            gateway.on_end(lambda: _end_with_spark(agent, termination))
        with termination.handling(agent.stop), agent.reading_on_sighup():
            _log.info(
                "agent started", client_id=options.client_id, group=options.group, endpoint=endpoint.url
            )
            if options.once:
                return agent.run_once()
            agent.run()
    return True


def _end_with_spark(agent: Agent, termination: Termination) -> None:
    """Stop the agent: `spark-submit` has ended, and whoever watches it starts another agent."""
    agent.stop()
    termination.begin()


@attrs.frozen
class Endpoint:
    """What an agent serves: its metrics, and the documents of its loop, which requests can switch.

    `url` is None if nothing is served.
    """

    instruments: AgentInstruments
    documents: SwitchedDocuments
    url: str | None


@contextmanager
def serve(
    connection: Connection,
    documents: Documents,
    client_id: str,
    access: Access | None,
    *,
    wake: Callable[[], None],
    election_error: Callable[[], str] = lambda: "",
    journal_problems: Callable[[], Sequence[Problem]] = lambda: (),
) -> Iterator[Endpoint]:
    """Serve the endpoint of an agent in this context; raises `ProblemsError` if the address is not available.

    Without `access` the instruments only log.
    """
    surface = Surface.of(client_id, host=socket.gethostname(), headwater=version("headwater"))
    instruments = AgentInstruments(surface.registry, client_id, election_error, journal_problems)
    switched = SwitchedDocuments(documents)
    if access is None:
        yield Endpoint(instruments, switched, None)
        return
    surface = surface.with_section(instruments.section()).with_route(switched.route(wake))
    lag = LagWatch(connection, surface.registry, client_id, lambda: consumed_topics(instruments.state))
    with ControlServer(surface, access) as server, lag:
        yield Endpoint(instruments, switched, server.url)
