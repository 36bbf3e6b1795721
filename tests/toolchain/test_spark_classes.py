"""Spark's archived classes: a driver reads them, and an archive belongs to one installation."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.toolchain import ToolchainError, spark
from headwater.toolchain.cache import Cache
from headwater.toolchain.commands import Progress
from headwater.toolchain.spark import ensure_spark_classes, ensure_spark_jars, spark_java_options
from tests.quick_java import QUICK_JAVA
from tests.runtime.spark.processes import is_running

_START = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
session = builder.config("spark.jars", ",".join(sys.argv[1:])).getOrCreate()
jvm = session._jvm
settings = jvm.java.util.HashMap({"bootstrap.servers": "127.0.0.1:1"})
for name in ("key.deserializer", "value.deserializer"):
    settings[name] = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
arrays = session.sparkContext._gateway.new_array
types, arguments = arrays(jvm.java.lang.Class, 1), arrays(jvm.java.lang.Object, 1)
types[0], arguments[0] = loader.loadClass("java.util.Map"), settings
consumer = loader.loadClass("org.apache.kafka.clients.consumer.KafkaConsumer")
consumer.getConstructor(types).newInstance(arguments).close()
session.stop()
"""


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like an installation of Spark."""
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    monkeypatch.setenv("SPARK_HOME", str(home))
    return home


def _recorded(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record an archive without Spark; return the names of the cache's entries."""
    monkeypatch.setattr(
        "headwater.toolchain.spark._record_classes", lambda archive, _: archive.write_text("")
    )
    ensure_spark_classes(cache, Progress())
    return sorted(folder.name for folder in cache.root.iterdir() if folder.is_dir())


@pytest.mark.spark
@pytest.mark.slow
def test_a_driver_loads_the_archived_classes(tmp_path: Path) -> None:
    jars = ensure_spark_jars()
    ensure_spark_classes(Cache(), Progress())
    log = tmp_path / "classes.log"
    options = (*QUICK_JAVA, *spark_java_options(), f"-Xlog:class+load:file={log}")
    subprocess.run(
        [sys.executable, "-c", _START, *jars],
        env={**os.environ, "SPARK_SUBMIT_OPTS": " ".join(options)},
        capture_output=True,
        check=True,
    )
    lines = log.read_text().splitlines()
    for package in (" org.apache.spark.", " org.apache.kafka."):
        loaded = [line for line in lines if package in line]
        archived = [line for line in loaded if "shared objects file (top)" in line]
        assert len(archived) > len(loaded) / 2 > 100  # classes of lambdas are generated at each start


def test_nothing_is_read_before_it_is_recorded(
    installation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache")
    cache.root.mkdir()
    assert spark_java_options(cache) == ()
    _recorded(cache, monkeypatch)
    assert any(option.startswith("-XX:SharedArchiveFile=") for option in spark_java_options(cache))
    assert installation.exists()


def test_an_upgrade_replaces_the_archive_and_removes_those_of_deleted_installations(
    installation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache")
    (first,) = _recorded(cache, monkeypatch)
    os.utime(installation / "jars", ns=(1, 1))
    assert spark_java_options(cache) == ()
    (second,) = _recorded(cache, monkeypatch)
    assert second != first
    other = installation.rename(tmp_path / "other")
    monkeypatch.setenv("SPARK_HOME", str(other))
    (third,) = _recorded(cache, monkeypatch)
    assert third != second


def test_without_spark_nothing_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "none"))
    cache = Cache(tmp_path / "cache")
    ensure_spark_classes(cache, Progress())
    assert spark_java_options(cache) == ()
    assert not cache.root.exists()


def test_a_spark_that_does_not_end_in_time_is_killed_with_its_jvm(
    installation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child process stands for the JVM: it would outlive a Python that is killed alone."""
    started = tmp_path / "started"
    program = (
        "import subprocess, time; from pathlib import Path; child = subprocess.Popen(['sleep', '600']); "
        f"Path({str(started)!r}).write_text(str(child.pid)); time.sleep(600)"
    )
    monkeypatch.setattr(spark, "_PROGRAM", program)
    cache = Cache(tmp_path / "cache")
    for seconds in (1, 10, 60):  # on a busy machine it may be killed before it has started
        monkeypatch.setattr(spark, "_RECORDING_SECONDS", seconds)
        with pytest.raises(ToolchainError, match=f"has not ended within {seconds} s"):
            ensure_spark_classes(cache, Progress())
        if started.exists() and started.read_text():
            break
    assert not is_running(int(started.read_text()))
    assert spark_java_options(cache) == ()
    assert installation.exists()
