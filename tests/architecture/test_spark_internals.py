"""Private parts of PySpark and Spark are used in one package, which tries them when an application starts."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_SOURCES = _ROOT / "spark_jobs"
_PUBLIC_MODULES = {
    "pyspark",
    "pyspark.errors",
    "pyspark.sql",
    "pyspark.sql.functions",
    "pyspark.sql.streaming.query",
    "pyspark.sql.types",
    "py4j.protocol",
}
"""What the documentation of PySpark describes; of Py4J only the exceptions, which PySpark passes on."""
_OWN = {"self", "cls"}
_PUBLIC_PRIVATE_NAMES = {"KafkaError"}
"""The codes of librdkafka itself begin with an underscore."""
_DOCUMENTED = {"sys._current_frames"}
"""What the documentation of Python describes."""


def _private_uses(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in ("pyspark", "py4j"):
                yield from () if module in _PUBLIC_MODULES else (module,)
            case ast.Import(names=names):
                yield from (
                    each.name
                    for each in names
                    if each.name.partition(".")[0] in ("pyspark", "py4j") and each.name not in _PUBLIC_MODULES
                )
            case ast.Attribute(value=value, attr=name) if name.startswith("_") and not name.startswith("__"):
                is_known = isinstance(value, ast.Name) and value.id in _OWN | _PUBLIC_PRIVATE_NAMES
                text = f"{ast.unparse(value)}.{name}"
                yield from () if is_known or text in _DOCUMENTED else (text,)
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
                yield from (name,) if name.startswith("_") and not name.startswith("__") else ()
            case _:
                pass


def test_only_one_package_uses_private_parts_of_spark() -> None:
    found = {
        str(path.relative_to(_SOURCES)): uses
        for path in sorted(_SOURCES.rglob("*.py"))
        if "engine" not in path.parts  # a contract: it imports no Spark
        if (uses := list(_private_uses(path.read_text(encoding="utf-8"))))
    }
    outside = {name: uses for name, uses in found.items() if "/spark_internals/" not in name}
    assert outside == {}
    assert len(found) >= 3


@pytest.mark.parametrize(
    "source",
    [
        "from pyspark.sql.pandas.functions import pandas_udf",
        "import pyspark.worker",
        "from py4j.java_gateway import JavaObject",
        "spark._jvm.java.lang.System",
        "rows.sparkSession.sparkContext._jsc",
        "getattr(SparkContext, '_gateway', None)",
    ],
)
def test_a_private_use_is_found(source: str) -> None:
    assert list(_private_uses(source))


@pytest.mark.parametrize(
    "source", ["from pyspark.sql import DataFrame", "self._rows", "KafkaError._TIMED_OUT", "x.__class__"]
)
def test_public_and_own_names_are_allowed(source: str) -> None:
    assert not list(_private_uses(source))
