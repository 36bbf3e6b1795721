"""A chain of expressions evaluated by Spark SQL before the rows reach Python (`infra.compiler.backends`)."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import BinaryType

from infra.model.behaviours import (
    Behaviour,
    Filter,
    Format,
    MapRecord,
    MapValues,
    NonNullKeyFilter,
    PassThrough,
)
from infra.model.nodes import ProcessorNode, SinkNode, SourceNode
from spark_jobs.runtime.program import SubtopologyProgram
from spark_jobs.runtime.worker.rows import COLUMNS

_BYTES = "bytes"


def transformed(rows: DataFrame, program: SubtopologyProgram) -> DataFrame:
    """Return `rows` (columns of `worker.rows`) with keys and values as the program's sink writes them."""
    first, *nodes, last = program.nodes
    if not (isinstance(first, SourceNode) and first.reads and isinstance(last, SinkNode)):
        raise AssertionError(program.name)
    formats = first.reads.format
    rows = rows.withColumns(
        {
            "timestamp": sql.col("time"),
            "key": _read("key", formats.key or program.defaults.settle(None, "key")),
            "value": _read("value", formats.value or program.defaults.settle(None, "value")),
        }
    )
    for node in nodes:
        if isinstance(node, ProcessorNode) and node.behaviour is not None:
            rows = _through(rows, node.behaviour)
    rows = rows.withColumns({name: _written(rows, name) for name in ("key", "value")})
    return rows.select(*COLUMNS)


def _through(rows: DataFrame, behaviour: Behaviour) -> DataFrame:
    match behaviour:
        case PassThrough():
            return rows
        case NonNullKeyFilter():
            return rows.where(sql.col("key").isNotNull())
        case Filter(where=str() as text, negate=negate):
            holds = sql.coalesce(sql.expr(text), sql.lit(False))  # noqa: FBT003 - a literal of SQL
            return rows.where(~holds if negate else holds)
        case MapValues(value=str() as text):
            return rows.withColumn("value", sql.expr(text))
        case MapRecord(key=str() as key, value=value):
            new = {"key": sql.expr(key)}
            return rows.withColumns(new if value is None else new | {"value": sql.expr(value)})
    raise AssertionError(behaviour)


def _read(name: str, format_: Format) -> Column:
    return sql.col(name) if format_.name == _BYTES else sql.col(name).cast("string")


def _written(rows: DataFrame, name: str) -> Column:
    if isinstance(rows.schema[name].dataType, BinaryType):
        return sql.col(name)
    return sql.col(name).cast("string").cast("binary")
