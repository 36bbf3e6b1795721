"""Fixtures of all tests. One shared broker serves all xdist workers of a test run."""

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import trustme
from hypothesis import settings

from tests.broker_data import copy_data
from tests.broker_version import BROKER_VERSION
from tests.oracle.kafka_streams import KafkaStreams
from tests.scheduling import LongestFirst
from toolchain import KafkaDistribution, PulumiToolchain, ensure_kafka, ensure_pulumi, spark_java_options
from toolchain.broker import Broker, Settings, local
from toolchain.broker.guard import Guard

_END_BROKER = """
import pathlib, sys
from toolchain.broker import local
local.down(pathlib.Path(sys.argv[1]), delete_data=True)
"""
_GUARD = pytest.StashKey[Guard]()
# No test stops it: heartbeats that a busy disk or processor delays must not take its partitions from it.
_SHARED_BROKER = Settings(
    overrides={"broker.session.timeout.ms": "60000", "broker.heartbeat.interval.ms": "2000"}
)

_QUICK_JVM = (
    "-XX:+UseSerialGC",
    # Short runs need no optimizing compiler. Without it, Java reserves 48 MiB for compiled code: the sessions
    # that many tests share compile more, and Java would then discard code, or compile nothing any more.
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=240m",
    # Each start would collect the whole heap when Spark's classes first exceed 21 MiB.
    "-XX:MetaspaceSize=256m",
)

# Imports and collection, whose objects the run keeps, spend a third of their CPU time on garbage collections.
gc.disable()
gc.set_threshold(20_000)

# Hypothesis: the same examples in every run, and no deadline, because the machine may be busy.
# `--hypothesis-profile=default` draws new examples.
settings.load_profile("ci")
# `make check` tries a fifth of the examples, `make test` all of them.
settings.register_profile("quick", settings.get_profile("ci"), max_examples=settings().max_examples // 5)


@pytest.fixture(scope="session")
def kafka_distribution() -> KafkaDistribution:
    return ensure_kafka(version=BROKER_VERSION)


@pytest.fixture(scope="session")
def pulumi_toolchain() -> PulumiToolchain:
    return ensure_pulumi()


@pytest.fixture(scope="session")
def kafka(kafka_distribution: KafkaDistribution) -> local.LocalBroker:
    """A broker that all tests of the run share: use names of `unique`, and do not stop or change it."""
    return local.up(kafka_distribution, _shared_broker_folder(), port=0, settings=_SHARED_BROKER)


@pytest.fixture(scope="session")
def own_broker(
    kafka_distribution: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Broker]:
    """Create a broker that a test may pause, kill or secure: `with own_broker(Settings(...)) as broker:`."""

    def make(settings: Settings | None = None) -> Broker:
        folder = tmp_path_factory.mktemp("kafka")
        copy_data(kafka_distribution, folder, settings or Settings())
        return Broker(kafka_distribution, folder, settings)

    return make


@pytest.fixture(scope="session")
def certificate_authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def unique() -> Callable[[str], str]:
    """Return a function that creates names that no other test uses: `unique("orders")`."""
    return lambda prefix: f"{prefix}-{uuid4().hex[:10]}"


@pytest.fixture(scope="session")
def kafka_streams() -> Iterator[KafkaStreams]:
    oracle = KafkaStreams()
    yield oracle
    oracle.close()


@pytest.fixture
def golden() -> Callable[[Path, str], None]:
    """Compare a text with a file. `UPDATE_GOLDEN=1` rewrites the file: review the diff, then commit."""

    def check(file: Path, text: str) -> None:
        if "UPDATE_GOLDEN" in os.environ:
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    return check


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LongestFirst | None:
    return LongestFirst(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_configure(config: pytest.Config) -> None:
    # Every start of Spark reads this, also in subprocesses.
    options = (*_QUICK_JVM, *spark_java_options())
    os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(options))
    if _is_worker():
        return
    config.stash[_GUARD] = Guard(sys.executable, "-c", _END_BROKER)
    config.stash[_GUARD].watch(str(_shared_broker_folder()))


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
    folder = _shared_broker_folder()
    if folder.exists():
        local.down(folder)
        log, kept = folder / "broker.log", config.rootpath / ".pytest_cache" / "kafka.log"
        if log.exists():
            kept.parent.mkdir(exist_ok=True)
            shutil.copy(log, kept)
        shutil.rmtree(folder)
    config.stash[_GUARD].dismiss()


def _is_worker() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ


def _shared_broker_folder() -> Path:
    """Return the folder of the shared broker, named after the first process of the run."""
    return Path(tempfile.gettempdir(), f"headwater-tests-{os.getppid() if _is_worker() else os.getpid()}")
