"""Our own code on its way to executors that do not have it installed."""

import atexit
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession

_PACKAGES = ("infra", "spark_jobs")
_ARCHIVE = "headwater.zip"


def ship_packages(spark: SparkSession) -> None:
    """Add the packages to the session's files, unless its executors are this process.

    The libraries that they need (attrs, confluent-kafka, lmdb, sqlglot, ...) hold compiled code, so they must
    be installed where the executors run, or come in `spark.archives`.
    """
    context = spark.sparkContext
    if str(context.master).startswith("local["):
        return
    folder = tempfile.mkdtemp(prefix="headwater-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # executors that come later fetch it, too
    archive = Path(folder, _ARCHIVE)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file, name in _sources():
            packed.write(file, name)
    context.addPyFile(str(archive))


def _sources() -> Iterator[tuple[Path, str]]:
    for package in _PACKAGES:
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            root = Path(place)
            for file in sorted(root.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    yield file, str(Path(package, file.relative_to(root)))
