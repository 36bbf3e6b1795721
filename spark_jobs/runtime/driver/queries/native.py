"""A sub-topology that Spark SQL evaluates before its rows reach Python (`infra.compiler.backends`)."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from infra.model.behaviors import (
    Behavior,
    Filter,
    Format,
    MapRecord,
    MapValues,
    NonNullKeyFilter,
    PassThrough,
)
from infra.model.nodes import ProcessorNode, SinkNode, SourceNode
from spark_jobs.runtime.engine.program import SubtopologyProgram
from spark_jobs.runtime.worker.task_input import COLUMNS

_BYTES = "bytes"


def evaluate_program(rows: DataFrame, program: SubtopologyProgram) -> DataFrame:
    """Return `rows` (columns of `worker.task_input`) with keys and values as the sink writes them."""
    first, *nodes, last = program.nodes
    if not (isinstance(first, SourceNode) and first.reads and isinstance(last, SinkNode) and last.writes):
        raise AssertionError(program.name)
    read, written = first.reads.format, last.writes.format
    resolve = program.defaults.resolve
    rows = rows.withColumns(
        {
            "timestamp": sql.col("time"),
            "key": read_column("key", resolve(read.key, "key")),
            "value": read_column("value", resolve(read.value, "value")),
        }
    )
    for node in nodes:
        if isinstance(node, ProcessorNode) and node.behavior is not None:
            rows = _evaluate(rows, node.behavior)
    rows = rows.withColumns(
        {
            "key": written_column(sql.col("key"), resolve(written.key, "key")),
            "value": written_column(sql.col("value"), resolve(written.value, "value")),
        }
    )
    return rows.select(*COLUMNS)


def _evaluate(rows: DataFrame, behavior: Behavior) -> DataFrame:
    match behavior:
        case PassThrough():
            return rows
        case NonNullKeyFilter():
            return rows.where(sql.col("key").isNotNull())
        case Filter(where=str() as text, negate=negate):
            is_true = sql.coalesce(sql.expr(text), sql.lit(False))  # noqa: FBT003 - a literal of SQL
            return rows.where(~is_true if negate else is_true)
        case MapValues(value=str() as text):
            return rows.withColumn("value", sql.expr(text))
        case MapRecord(key=str() as key, value=value):
            new = {"key": sql.expr(key)}
            return rows.withColumns(new if value is None else new | {"value": sql.expr(value)})
    raise AssertionError(behavior)


def read_column(name: str, format_: Format) -> Column:
    """Return the deserialized column; malformed UTF-8 becomes U+FFFD as in Java (a plain cast keeps it)."""
    return sql.col(name) if format_.name == _BYTES else sql.make_valid_utf8(sql.col(name).cast("string"))


def written_column(column: Column, format_: Format) -> Column:
    """Return the serialized column; the compiler assigns programs with other formats to tasks."""
    return column if format_.name == _BYTES else column.cast("binary")
