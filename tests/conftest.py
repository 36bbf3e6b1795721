"""Fixtures of all tests. Shared brokers serve all xdist workers of a test run."""

import gc
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import trustme
from hypothesis import settings
from rich.console import Console

from headwater.toolchain import (
    KafkaDistribution,
    PulumiToolchain,
    ToolchainError,
    ensure_kafka,
    ensure_pulumi,
    spark_java_options,
)
from headwater.toolchain.broker import Broker, Settings, local
from headwater.toolchain.broker.readiness import until
from headwater.toolchain.cache import Cache
from headwater.toolchain.commands import Progress
from headwater.toolchain.preparation import prepare_parts
from headwater.toolchain.sessions import Guard
from headwater.toolchain.spark import ensure_spark_classes
from tests.broker_data import copy_data
from tests.broker_version import BROKER_VERSION
from tests.bytecode import compile_part
from tests.durations import DurationRecorder, records_durations
from tests.excluded_modules import excluded_marks, marks_of_module
from tests.oracle.kafka_streams import VERSION, KafkaStreams
from tests.processor_time import ControlGroup
from tests.quick_java import JAVA_FILES, QUICK_JAVA, QUICK_MAVEN
from tests.scheduling import LongestFirst
from tests.shared_topics import SharedTopics

_END_RUN = f"""
import os, pathlib, shutil, sys
from headwater.toolchain.broker import local
for folder in pathlib.Path(sys.argv[1], "shared").glob("*"):
    local.down(folder)
for folder in sys.argv[1], os.environ["{JAVA_FILES}"]:
    shutil.rmtree(folder, ignore_errors=True)
"""
_IN_MEMORY, _NEEDED_BYTES = Path("/dev/shm"), 4 * 1024**3  # noqa: S108 - brokers sync many small files
_GUARD = pytest.StashKey[Guard]()
_RECORDS = "records_durations"
_SPARK_OPTIONS = "SPARK_SUBMIT_OPTS"
_GROUP_OF_BROKERS = pytest.StashKey[ControlGroup]()
# Each has an open socket, and a client logs its failures for as long as it lives.
_ENDED_THREADS, _END_SECONDS = ("leadership-close", "task-owner"), 90
# No test stops it: heartbeats that a busy disk or processor delays must not take its partitions from it.
_SHARED_BROKER = Settings(
    overrides={"broker.session.timeout.ms": "60000", "broker.heartbeat.interval.ms": "2000"}
)

_QUICK_JVM = (
    *QUICK_JAVA,
    # Without the optimizing compiler, Java reserves 48 MiB for compiled code: the sessions that many tests
    # share compile more, and Java would then discard code, or compile nothing any more.
    "-XX:ReservedCodeCacheSize=240m",
    # Each start would collect the whole heap when Spark's classes first exceed 21 MiB.
    "-XX:MetaspaceSize=256m",
)
_INTERPRETED = (
    # Compiling the code of a batch takes longer than interpreting it for its few rows.
    # Tests with `generated_code`, of `spark-submit`, of large batches and of hosts use Spark's defaults; with
    # HEADWATER_GENERATED_CODE, as in `make fuzz`, all tests do.
    "-Dspark.sql.codegen.wholeStage=false",
    "-Dspark.sql.codegen.factoryMode=NO_CODEGEN",
)


class _DiscardedBroker(Broker):
    """A broker whose data no test needs at its end: it is killed, because an orderly stop takes seconds."""

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree((self.folder / "data").resolve(), ignore_errors=True)


# Imports and collection, whose objects the run keeps, spend a third of their CPU time on garbage collections.
gc.disable()
gc.set_threshold(20_000)

# Hypothesis: the same examples in every run, and no deadline, because the machine may be busy.
# `--hypothesis-profile=default` draws new examples.
settings.register_profile("test", settings.get_profile("ci"), max_examples=25)
settings.load_profile("test")
# `make check` and `make mutation` try fewer examples, `make fuzz` many new ones.
settings.register_profile("quick", settings.get_profile("ci"), max_examples=10)
settings.register_profile("mutation", settings.get_profile("ci"), max_examples=20)
settings.register_profile("long", settings.get_profile("ci"), max_examples=1_000, derandomize=False)


@pytest.fixture(scope="module", autouse=True)
def ended_threads() -> Iterator[None]:
    """Check that the tests of a module leave no client or socket that later tests would meet."""
    before = set(threading.enumerate())

    def left() -> list[str]:
        new = set(threading.enumerate()) - before
        return [each.name for each in new if each.name in _ENDED_THREADS]

    yield
    assert until(lambda: not left(), _END_SECONDS), left()


@pytest.fixture(autouse=True)
def recursion_limit() -> Iterator[None]:
    """Restore the recursion limit, which an engine raises for its sub-topology.

    How deep a hostile value may be nested would otherwise depend on the tests before.
    """
    before = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(before)


@pytest.fixture(scope="session")
def kafka_distribution() -> KafkaDistribution:
    return ensure_kafka(version=BROKER_VERSION)


@pytest.fixture(scope="session")
def pulumi_toolchain() -> PulumiToolchain:
    return ensure_pulumi()


@pytest.fixture(scope="session")
def shared_broker(
    kafka_distribution: KafkaDistribution, shared_topics: SharedTopics, pytestconfig: pytest.Config
) -> Callable[[str], local.LocalBroker]:
    """Return a function that returns a broker of the run by its name, and starts it if there is none yet."""

    def broker(name: str) -> local.LocalBroker:
        folder = _folder_of_run() / "shared" / name
        found = local.up(kafka_distribution, folder, port=0, settings=_SHARED_BROKER)
        if (group := pytestconfig.stash.get(_GROUP_OF_BROKERS, None)) is not None:
            group.add(found.pid)  # its CPU time is not the time of the test that has started it
        shared_topics.brokers.add(found.bootstrap_servers)
        return found

    return broker


@pytest.fixture(scope="session")
def kafka(shared_broker: Callable[[str], local.LocalBroker]) -> local.LocalBroker:
    """A broker that tests of the run share: use names of `unique`, and do not stop or change it.

    Those of the runtime have others: plans, previews and agents read all topics of their cluster.
    """
    return shared_broker("kafka")


@pytest.fixture(scope="session")
def own_broker(
    kafka_distribution: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Broker]:
    """Create a broker that a test may pause, kill or secure: `with own_broker(Settings(...)) as broker:`."""

    def make(settings: Settings | None = None) -> Broker:
        folder = tmp_path_factory.mktemp("kafka")
        data = _folder_of_run() / "data" / uuid4().hex
        data.mkdir(parents=True)
        (folder / "data").symlink_to(data)
        copy_data(kafka_distribution, folder, settings or Settings())
        return _DiscardedBroker(kafka_distribution, folder, settings)

    return make


@pytest.fixture(scope="session")
def certificate_authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def shared_topics() -> SharedTopics:
    return SharedTopics()


@pytest.fixture(scope="module", autouse=True)
def deleted_topics(shared_topics: SharedTopics) -> Iterator[None]:
    """Delete the topics of a module from shared brokers, after its tests."""
    yield
    shared_topics.delete()


@pytest.fixture(scope="session")
def unique(shared_topics: SharedTopics) -> Callable[[str], str]:
    """Return a function that creates names that no other test uses: `unique("orders")`.

    The topics with these names are deleted from shared brokers after the tests of the module.
    """
    return shared_topics.unique_name


@pytest.fixture(scope="session")
def kafka_streams_of() -> Iterator[Callable[[str], KafkaStreams]]:
    """Return a function that returns the JVM of a version, which its first new request starts."""
    started: dict[str, KafkaStreams] = {}

    def of(version: str) -> KafkaStreams:
        return started.setdefault(version, KafkaStreams(version, keeps_answers=True))

    yield of
    for each in started.values():
        each.close()


@pytest.fixture(scope="session")
def kafka_streams(kafka_streams_of: Callable[[str], KafkaStreams]) -> KafkaStreams:
    return kafka_streams_of(VERSION)


@pytest.fixture
def golden() -> Callable[[Path, str], None]:
    """Compare a text with a file. `UPDATE_GOLDEN=1` rewrites the file: review the diff, then commit."""

    def check(file: Path, text: str) -> None:
        if "UPDATE_GOLDEN" in os.environ:
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    return check


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LongestFirst | None:
    return LongestFirst(config, log) if config.getoption("dist") in ("loadscope", "loadfile") else None


def pytest_configure_node(node: Any) -> None:  # noqa: ANN401 - xdist's WorkerController, untyped
    """Tell a worker whether durations are recorded: reading the CPU time of a group takes a while."""
    node.workerinput[_RECORDS] = records_durations(node.config)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import modules whose tests all have marks that the run excludes: a quarter of all modules."""
    excluded = excluded_marks(config.option.markexpr)
    if not excluded or collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    return True if marks_of_module(collection_path.read_text(encoding="utf-8")) & excluded else None


def pytest_configure(config: pytest.Config) -> None:
    # Every start of Spark reads this, also in subprocesses.
    plans = () if os.environ.get("HEADWATER_GENERATED_CODE") else _INTERPRETED
    options = (*_QUICK_JVM, *plans, *spark_java_options())
    os.environ.setdefault(_SPARK_OPTIONS, " ".join(options))
    # The JVM that prints the command line of the driver's.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", " ".join(QUICK_JAVA))
    os.environ.setdefault("MAVEN_OPTS", QUICK_MAVEN)
    if _is_worker():
        given = config.workerinput  # type: ignore[attr-defined]  # xdist adds it
        compile_part(config, int(given["workerid"].removeprefix("gw")), given["workercount"])
        if given[_RECORDS]:
            config.pluginmanager.register(DurationRecorder(_join_group(config)))
        return
    if records_durations(config):
        config.pluginmanager.register(DurationRecorder(find_brokers=_group_of_brokers))
        threading.Thread(target=_prepare_spark, daemon=True).start()
    _folder_of_run().mkdir(parents=True, exist_ok=True)
    config.stash[_GUARD] = Guard(sys.executable, "-c", _END_RUN)
    config.stash[_GUARD].watch(str(_folder_of_run()))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Wait for Spark's archived classes outside of the time limit of the test."""
    if _is_worker() and item.get_closest_marker("spark") and item.config.workerinput[_RECORDS]:  # type: ignore[attr-defined]
        _use_spark_classes()
    return (yield)


def _prepare_spark() -> None:
    """Record Spark's classes in a new checkout, while workers collect the tests and run the first ones."""
    with suppress(ToolchainError):  # the tests of Spark fail with the reason
        prepare_parts(("spark",))


@cache
def _use_spark_classes() -> None:
    """Let later starts of Spark read the archived classes, once they are recorded."""
    with suppress(ToolchainError):
        ensure_spark_classes(Cache(), Progress(Console(quiet=True)))
    present = os.environ[_SPARK_OPTIONS].split()
    missing = (option for option in spark_java_options() if option not in present)
    os.environ[_SPARK_OPTIONS] = " ".join((*present, *missing))


def pytest_collection_finish() -> None:
    # Garbage collections during the tests skip modules and collected tests, which the run keeps.
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    # Clients that earlier tests have left keep sockets open, and report brokers that were stopped.
    if item.get_closest_marker("broker"):
        gc.collect()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _is_worker():
        return
    for folder in (_folder_of_run() / "shared").glob("*"):
        _kill_broker(folder)
        log, kept = folder / "broker.log", config.rootpath / ".pytest_cache" / f"{folder.name}.log"
        if log.exists():
            kept.parent.mkdir(exist_ok=True)
            shutil.copy(log, kept)
    shutil.rmtree(_folder_of_run(), ignore_errors=True)
    if (group := ControlGroup.create(_folder_of_run().name)) is not None:
        group.remove()
    config.stash[_GUARD].dismiss()


def _kill_broker(folder: Path) -> None:
    """Kill a shared broker, whose data is deleted: closing its thousands of logs takes seconds."""
    if (broker := local.status(folder)) is not None:
        with suppress(ProcessLookupError):  # it has ended since
            os.kill(broker.pid, signal.SIGKILL)
        local.down(folder)


def _join_group(config: pytest.Config) -> ControlGroup | None:
    """Make this worker a member of a group of its own; None without permission."""
    run = _folder_of_run().name
    # Once this process is a member, groups would be created below the group of this worker.
    brokers = _group_of_brokers()
    group = ControlGroup.create(run, os.environ["PYTEST_XDIST_WORKER"])
    if brokers is None or group is None or not group.add(os.getpid()):
        return None
    config.stash[_GROUP_OF_BROKERS] = brokers
    return group


def _group_of_brokers() -> ControlGroup | None:
    return ControlGroup.create(_folder_of_run().name, "brokers")


def _is_worker() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ


@cache
def _folder_of_run() -> Path:
    """Return the folder of the brokers, named after the first process of the run; in memory if possible."""
    name = f"headwater-tests-{os.getppid() if _is_worker() else os.getpid()}"
    if (folder := _IN_MEMORY / name).is_dir():
        return folder
    has_memory = _IN_MEMORY.is_dir() and shutil.disk_usage(_IN_MEMORY).free > _NEEDED_BYTES
    return folder if has_memory and not _is_worker() else Path(tempfile.gettempdir(), name)
