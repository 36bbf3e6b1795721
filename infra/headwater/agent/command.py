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

    `options` are the values of `agent_options` by name. Raises `click.UsageError`, and `ProblemsError` before
    any change if documents or settings have errors.
    """
    if bool(options["files"]) == (options["manifest"] is not None):
        raise click.UsageError("Name FILES, or one manifest by --manifest.")
    job = JobOptions(
        connection=options["cluster"].connection(),
        http=options["http"],
        log_format=options["log_format"],
        log_level=options["log_level"],
        stop_timeout_ms=options["stop_timeout_ms"],
        policy_files=options["policy_files"],
    )
    client_id = options["client_id"] or f"headwater-agent-{socket.gethostname()}"
    job.configure_log()
    port = gateway_port_of(os.environ)
    gateway = GatewayWatch(port) if port is not None else None
    succeeded = True  # also if SIGTERM arrives before the agent runs
    with (
        Termination(client_id, job.stop_timeout_ms / 1_000) as termination,
        gateway or nullcontext(),
    ):
        settings = _settings_of(options, job, client_id)
        succeeded = _run_until_stopped(settings, job.access(), termination, gateway, once=options["once"])
    if gateway is not None and gateway.has_ended() and not termination.is_requested():
        raise ProblemsError([spark_ended(client_id, "the connection to its gateway was closed")])
    _log.info("agent ended", client_id=client_id)
    return 0 if succeeded else 1


def _settings_of(options: Mapping[str, Any], job: JobOptions, client_id: str) -> AgentSettings:
    manifest = options["manifest"]
    return AgentSettings(
        connection=job.connection,
        documents=DocumentFiles(options["files"]) if manifest is None else ManifestFile(manifest),
        client_id=client_id,
        group=options["group"],
        metadata_max_age_ms=options["metadata_max_age_ms"],
        settle_ms=options["follow_up_ms"],
        request_timeout_ms=options["request_timeout_ms"],
        session_timeout_ms=options["session_timeout_ms"],
        callback=options["callback"],
        policies=read_policies(job.policy_files),
    )


def _run_until_stopped(
    settings: AgentSettings,
    access: Access | None,
    termination: Termination,
    gateway: GatewayWatch | None,
    *,
    once: bool,
) -> bool:
    """Run the agent and return whether it succeeded."""
    clock, coordination = SystemClock(), coordination_of(settings)
    with serve_endpoint(
        settings.connection,
        settings.documents,
        settings.client_id,
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
        with termination.handle_signals(agent.stop), agent.reading_on_sighup():
            _log.info(
                "agent started", client_id=settings.client_id, group=settings.group, endpoint=endpoint.url
            )
            if once:
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
def serve_endpoint(
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
    surface = Surface.create(client_id, host=socket.gethostname(), headwater=version("headwater"))
    instruments = AgentInstruments(surface.registry, client_id, election_error, journal_problems)
    switched = SwitchedDocuments(documents)
    if access is None:
        yield Endpoint(instruments, switched, None)
        return
    surface = surface.with_section(instruments.section()).with_route(switched.route(wake))
    lag = LagWatch(connection, surface.registry, client_id, lambda: consumed_topics(instruments.state))
    with ControlServer(surface, access) as server, lag:
        yield Endpoint(instruments, switched, server.url)
