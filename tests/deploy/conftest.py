"""The programs that check deployments, the metrics that exist, and the files that get into an image."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from headwater.agent import events
from headwater.agent.instruments import AgentInstruments
from headwater.agent.lag import LagWatch
from headwater.agent.state import Outcome, TopicResult
from headwater.cli.agent_run import run as agent_run
from headwater.control import Surface
from headwater.kafka import Connection
from headwater_spark.commands.run import run as application_run
from headwater_spark.driver.metrics import Instruments
from headwater_spark.driver.queries.progress import NO_PROGRESS
from headwater_spark.driver.states import ClientState
from headwater_spark.stream_threads import ExpansionPhase, ProcessorsStatus, ThreadMetadata
from tests.control.states import LEADING
from tests.toolchain.programs import ensure_helm, ensure_promtool

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
_KEYWORDS = {"and", "or", "unless", "by", "without", "on", "ignoring", "offset", "bool", "inf", "nan"}
_SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


@pytest.fixture(scope="session")
def promtool() -> Path:
    return ensure_promtool()


@pytest.fixture(scope="session")
def helm() -> Path:
    return ensure_helm()


@pytest.fixture(scope="session")
def exported() -> frozenset[str]:
    """Return the names of all series that an agent exports."""
    surface = Surface.create("agent-1", host="host-1")
    instruments = AgentInstruments(surface.registry, "agent-1")
    LagWatch(Connection(bootstrap_servers=("localhost:9092",)), surface.registry, "agent-1", dict)
    instruments.record_state(LEADING)
    instruments.record_event(events.AttemptEnded("orders-app", 4, (TopicResult("a", 6, Outcome.EXPANDED),)))
    return _series(surface)


@pytest.fixture(scope="session")
def exported_by_runtime() -> frozenset[str]:
    """Return the names of all series that an application on Spark exports."""
    application: Any = _Application()
    return _series(Instruments(application).added_to(Surface.create("client-1", host="host-1")))


class _Application:
    id = "orders-app"
    state = ClientState.RUNNING
    problems = ()
    starting = ""

    slots = 2
    cluster_problem = ""

    def threads(self) -> tuple[ThreadMetadata, ...]:
        return (ThreadMetadata(name="orders-app-StreamThread-1", state="RUNNING"),)

    def processors(self) -> ProcessorsStatus:
        return ProcessorsStatus(4, 8, ExpansionPhase.CATCH_UP)

    def stall_reason(self) -> str:
        return ""

    def subtopology_status(self) -> Iterable[Mapping[str, object]]:
        watched = {"lag": 0, "stalled": False, "secondsWithoutProgress": 0.0}
        watched |= {"batchSeconds": 0.0, "taskSeconds": 0.0}
        return ({"id": "0", "restarts": 0, "parallelism": 1, **watched, **NO_PROGRESS},)


def _series(surface: Surface) -> frozenset[str]:
    return frozenset(
        f"{metric.name}{suffix}"
        for metric in surface.registry.collect()
        for suffix in _SUFFIXES.get(metric.type, ("",))
    )


@pytest.fixture(scope="session")
def accepts() -> Callable[[Iterable[str]], None]:
    """Fail unless `headwater` takes these arguments (of `agent run` or `run`)."""

    def check(arguments: Iterable[str]) -> None:
        first, *rest = arguments
        if first == "agent":
            assert rest.pop(0) == "run"
            agent_run.make_context("run", rest)
        else:
            assert first == "run"
            document = Path(rest.pop(0)).name  # is in the container, not here
            application_run.make_context("run", [str(DEPLOY / "kubernetes" / "runtime" / document), *rest])

    return check


def sent_files(ignore_file: Path) -> set[str]:
    """Return what an ignore file of a container build lets through; everything else is excluded."""
    lines = ignore_file.read_text(encoding="utf-8").splitlines()
    assert lines[1] == "*"
    return {line.removeprefix("!") for line in lines if line.startswith("!")}


def copied_files(containerfile: str) -> set[str]:
    """Return the files of the repository that a build copies."""
    copies = re.findall(r"^COPY (?!--from)(.*)$", containerfile, re.MULTILINE)
    return {source for line in copies for source in line.split()[:-1]}


def metrics_of(expression: str) -> set[str]:
    """Return the names of the series that a PromQL expression reads."""
    bare = re.sub(r'"[^"]*"', "", expression)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", bare)
    bare = re.sub(r"\b(by|without|on|ignoring)\s*\([^)]*\)", "", bare)
    names = re.findall(r"\b([a-z_][a-z0-9_]*)\b(?!\s*\()", bare)
    return set(names) - _KEYWORDS
