"""Spark's connector for Kafka, and Java classes for Spark that are recorded for a fast start.

An archive belongs to one installation of PySpark: Java compares the paths and times of its jars.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from headwater.toolchain import machine, maven_jars
from headwater.toolchain.cache import Cache, fingerprint
from headwater.toolchain.commands import Progress, ToolchainError
from headwater.toolchain.maven_jars import MavenJars
from headwater.toolchain.sessions import run_in_session

CONNECTOR_VERSION = "4.2.0"
_JARS = MavenJars("spark", "Spark's Kafka connector", CONNECTOR_VERSION)


def needed_programs(cache: Cache) -> tuple[machine.Program, ...]:
    """Return the programs that a download of Spark's jars would run now."""
    return (machine.JAVA,) if cache.find(_JARS.entry) else (machine.JAVA, machine.MAVEN)


def fetched_spark_jars() -> tuple[Path, ...]:
    """Return the connector's jars if they are downloaded already, else none."""
    return _fetched_jars(Cache())


def _fetched_jars(cache: Cache) -> tuple[Path, ...]:
    folder = cache.find(_JARS.entry)
    return () if folder is None else tuple(sorted(folder.glob("*.jar")))


def ensure_spark_jars(cache: Cache | None = None, progress: Progress | None = None) -> tuple[Path, ...]:
    """Return the connector's jars for `spark.jars`, downloaded on first use; raises `ToolchainError`."""
    cache = cache or Cache()
    machine.require_programs(needed_programs(cache))
    return tuple(sorted(_JARS.ensure(cache, progress or Progress()).glob("*.jar")))


_ARCHIVE = "spark.jsa"
_HOME = "home"
_PREFIX = "spark-classes-"
_RECORDING_SECONDS = 900
# A query that reads, evaluates SQL, runs Python with Arrow and writes, as each batch of an application does.
# Spark's web page is on, as in an application. The classes of the connector are only loaded and linked: its
# queries need a broker. Spark loads them with a class loader of its own, so Java compares what a jar contains
# with the archive, and not the path of the jar.
_PROGRAM = """
import sys
from contextlib import suppress
from pathlib import Path
from zipfile import ZipFile
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

folder, jars = Path(sys.argv[1]), sys.argv[2:]
(folder / "input").mkdir()
(folder / "input" / "one.txt").write_text("record")
builder = SparkSession.builder.master("local[2]").config("spark.ui.port", "0")
for setting in ("spark.driver.host", "spark.driver.bindAddress"):
    builder = builder.config(setting, "127.0.0.1")
if jars:
    builder = builder.config("spark.jars", ",".join(jars))
session = builder.config("spark.scheduler.mode", "FAIR").getOrCreate()

def batch(frame, _):
    columns = frame.selectExpr("CAST(value AS BINARY) AS value", "struct(value, 1 AS number) AS pair")
    columns.where("pair.number > 0").mapInArrow(lambda batches: batches, columns.schema).collect()
    columns.selectExpr("hash(value) AS value").repartition(2).groupBy("value").count().collect()

stream = session.readStream.text(str(folder / "input")).writeStream.foreachBatch(batch)
stream = stream.option("checkpointLocation", str(folder / "checkpoint"))
stream.trigger(availableNow=True).start().awaitTermination()
loader = session._jvm.java.lang.Thread.currentThread().getContextClassLoader()
unused = ("/shaded/", "JsonConverter")  # a start needs few of them
for name in (name for jar in jars for name in ZipFile(jar).namelist()):
    if name.startswith("org/") and name.endswith(".class") and not any(part in name for part in unused):
        with suppress(Py4JError):  # its library is optional
            # Java archives linked classes only; a list of its constructors links a class.
            loader.loadClass(name.removesuffix(".class").replace("/", ".")).getDeclaredConstructors()
session.stop()
gateway = SparkContext._gateway
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait()  # Java writes the archive when it ends
"""


def spark_java_options(cache: Cache | None = None) -> tuple[str, ...]:
    """Return the options of a driver's JVM that use the archive; none if it was not recorded."""
    entry = _cache_entry()
    folder = None if entry is None else (cache or Cache()).find(entry)
    return () if folder is None else maven_jars.reading_options(folder / _ARCHIVE)


def ensure_spark_classes(cache: Cache, progress: Progress) -> None:
    """Record the archive on first use; without PySpark there is nothing to do.

    Raises `ToolchainError` if Spark does not start, or does not end in time.
    """
    entry, home = _cache_entry(), _spark_home()
    if entry is None or home is None:
        return

    def record(folder: Path, shown: Progress) -> None:
        with shown.step("Spark: archiving its classes", expected="40 seconds"):
            _record_classes(folder / _ARCHIVE, _fetched_jars(cache))
        (folder / _HOME).write_text(str(home), encoding="utf-8")
        _remove_outdated(cache, home)

    cache.ensure(entry, record, progress)


def _record_classes(archive: Path, jars: Iterable[Path]) -> None:
    options = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *maven_jars.recording_options(archive))
    with tempfile.TemporaryDirectory(prefix="headwater-spark-") as folder:
        try:
            # In a session of its own: Spark's JVM would outlive a Python that is killed.
            done = run_in_session(
                [sys.executable, "-c", _PROGRAM, folder, *jars],
                folder=Path(folder),
                environment={
                    **os.environ,
                    "SPARK_SUBMIT_OPTS": " ".join(options),
                    "PYSPARK_PYTHON": sys.executable,
                },
                timeout_seconds=_RECORDING_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise ToolchainError(f"Spark has not ended within {_RECORDING_SECONDS} s.") from None
    if done.code or not archive.exists():
        raise ToolchainError(f"Spark cannot be started.\n{done.error[-2_000:]}")


def _remove_outdated(cache: Cache, home: Path) -> None:
    """Remove the archives of earlier versions of this installation, and of deleted ones: they are large."""
    for folder in cache.root.glob(f"{_PREFIX}*"):
        recorded = folder / _HOME
        if recorded.exists() and (
            (of := Path(recorded.read_text(encoding="utf-8"))) == home or not of.exists()
        ):
            shutil.rmtree(folder, ignore_errors=True)


def _cache_entry() -> str | None:
    """Return the name of the cache entry; None without Spark or Java."""
    home, java = _spark_home(), machine.JAVA.locate()
    if home is None or java is None or not (home / "jars").is_dir():
        return None
    installed = (home / "jars").stat().st_mtime_ns
    recorded = (_JARS.entry, _PROGRAM)
    return f"{_PREFIX}{fingerprint(str(home), str(installed), *maven_jars.build_of(java), *recorded)}"


def _spark_home() -> Path | None:
    """Return the folder of Spark that PySpark starts."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    spec = find_spec("pyspark")
    return (
        None
        if spec is None or not spec.submodule_search_locations
        else Path(spec.submodule_search_locations[0])
    )
