"""Rows that hold thousands of records of Kafka each, instead of a row for each record.

Spark's connector creates a row for each record, copies it twice, and writes it field by field for the
Python worker. DataFrames have no other way. So the RDD of the connector's records is found in the driver's
JVM, and its records are packed (`PackedRows.java`). If Spark SQL evaluates the records, the code that Spark
generates for it runs in between: over records, not over rows of the connector.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import structlog
from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from headwater_spark.spark_internals.input_partitions import group_partitions
from headwater_spark.spark_internals.java_classes import OptionalParts, create_object, rdd_of_batch
from headwater_spark.spark_internals.jvm import java_gateway

_log = structlog.get_logger(__name__)
_PACKED_ROWS = Path(__file__).with_name("PackedRows.java")
_PACKED_RECORDS = Path(__file__).with_name("PackedRecords.java")
_RECORD_ROWS = Path(__file__).with_name("RecordRows.java")
_RECORDS_AT_ONCE = 8192
_BYTES_AT_ONCE = 4 * 1024 * 1024
"""Limits of a row. The last record may exceed the bytes: a row has at least one record."""


@attrs.frozen
class Evaluation:
    """What Spark SQL evaluates before records are packed.

    - `columns`: the columns that it reads, as DDL: the columns of `worker.task_input`.
    - `evaluate`: returns rows with the same columns, or without the topic. No expression may fail.
    """

    columns: str
    evaluate: Callable[[DataFrame], DataFrame]


@attrs.frozen
class _JavaParts:
    """What a query needs in Spark's JVM.

    `session` sends each row as soon as it is packed: Arrow batches are limited in rows.
    """

    packer: JavaObject
    session: JavaObject
    fields: JavaObject


class RecordPacking(OptionalParts):
    """Packs records, as long as this Spark has the private parts that are used.

    Args:
        schema: The fields of a row with packed records, as DDL.
        evaluation: What Spark SQL evaluates before; None = records are packed as they are in Kafka.
    """

    def __init__(self, schema: str, evaluation: Evaluation | None = None) -> None:
        super().__init__("records not packed: Spark passes them on row by row")
        self._direct = OptionalParts("Spark SQL plans each step of a batch: its ranges are not read directly")
        self._schema = schema
        self._evaluation = evaluation
        self._parts: _JavaParts | None = None
        self._has_packed = False

    def packed(
        self, rows: DataFrame, groups: Sequence[int] | None, count: int, *, reads_values: bool
    ) -> DataFrame | None:
        """Return the records behind `rows`, packed; None = they have to be read row by row.

        That is so if there are none, if `groups` has too few partitions, or if this Spark has other private
        parts.

        Args:
            rows: A DataFrame that is read once, with a row for each record of Kafka and no others. Its plan
                is made here. What it evaluates is not: `evaluation` is evaluated instead.
            groups: The group of each partition of a topic, in the order of their numbers: each group becomes
                a Spark partition. None = each input partition becomes one.
            count: The number of groups.
            reads_values: False = values are empty, unless they are null. With an `evaluation` it is ignored:
                `evaluate` has to empty the values (`select_task_rows`).

        Raises:
            Py4JJavaError: Spark cannot plan the rows, for example because a broker does not answer.
        """
        return self.attempt(lambda: self._packed(rows, groups, count, reads_values=reads_values))

    def packed_ranges(
        self,
        batch: DataFrame,
        ranges: Mapping[tuple[str, int], tuple[int, int]],
        groups: Sequence[int],
        count: int,
        *,
        reads_values: bool,
    ) -> DataFrame | None:
        """Return the records of offset ranges, packed, without a plan of Spark SQL for them.

        Such a plan takes a fifth of a second of CPU time, and creates clients that ask the brokers. None =
        the ranges have to be planned, and given to `packed`.

        `batch` are the rows of a stream's batch: the ranges are read as these, which are not read. `ranges`
        is (topic, partition) → (first offset, offset after the last). The others are as for `packed`.

        Raises:
            Py4JJavaError: Spark cannot plan `batch`.
        """
        lines = "\n".join(
            f"{topic}\t{number}\t{first}\t{end}"
            for (topic, number), (first, end) in sorted(ranges.items())
            if first < end
        )

        def read() -> DataFrame | None:
            gateway, packer = java_gateway(batch.sparkSession), self._java_parts(batch).packer
            records = packer.records(rdd_of_batch(batch))
            if records is not None:
                records = packer.otherRanges(records, lines)
            if records is not None:
                records = group_partitions(gateway, records, groups, count)
            return None if records is None else self._frame(records, batch, reads_values=reads_values)

        return self._direct.attempt(read) if self.is_possible and lines else None

    def _packed(
        self, rows: DataFrame, groups: Sequence[int] | None, count: int, *, reads_values: bool
    ) -> DataFrame | None:
        records = self._java_parts(rows).packer.records(rdd_of_batch(rows))
        if records is not None and groups is not None:
            records = group_partitions(java_gateway(rows.sparkSession), records, groups, count)
        return None if records is None else self._frame(records, rows, reads_values=reads_values)

    def _frame(self, records: JavaObject, rows: DataFrame, *, reads_values: bool) -> DataFrame:
        """Return the packed records of an RDD, in the session of `rows`."""
        parts = self._java_parts(rows)
        packed = parts.packer.pack(records, reads_values)
        if not self._has_packed:
            self._has_packed = True
            _log.debug("records packed", evaluated=self._evaluation is not None)
        frame = parts.session.internalCreateDataFrame(packed, parts.fields, False)  # noqa: FBT003 - Java's own signature
        return DataFrame(frame, rows.sparkSession)

    def _java_parts(self, rows: DataFrame) -> _JavaParts:
        if self._parts is None:
            self._parts = self._create_parts(java_gateway(rows.sparkSession), rows)
        return self._parts

    def _create_parts(self, gateway: Any, rows: DataFrame) -> _JavaParts:  # noqa: ANN401 - py4j has no types
        session: Any = rows.sparkSession._jsparkSession.cloneSession()  # noqa: SLF001 - PySpark clones no session
        session.conf().set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
        types = gateway.jvm.org.apache.spark.sql.types.StructType
        code = _PACKED_RECORDS.read_text(encoding="utf-8")
        packer = create_object(gateway, _PACKED_ROWS, code, _RECORDS_AT_ONCE, _BYTES_AT_ONCE)
        if self._evaluation is not None:
            columns = types.fromDDL(self._evaluation.columns)
            no_rows = rows.sparkSession._jsparkSession.emptyDataFrame().queryExecution().toRdd()  # noqa: SLF001 - PySpark shows no RDD of rows
            plan = _evaluated_plan(rows.sparkSession, no_rows, columns, self._evaluation.evaluate)
            packer.evaluate(_RECORD_ROWS.read_text(encoding="utf-8"), plan, no_rows)
        return _JavaParts(packer=packer, session=session, fields=types.fromDDL(self._schema))


def _evaluated_plan(
    spark: SparkSession, rdd: JavaObject, columns: JavaObject, evaluate: Callable[[DataFrame], DataFrame]
) -> JavaObject:
    """Return the physical plan of what `evaluate` returns for an RDD with `columns`."""
    session = spark._jsparkSession  # noqa: SLF001 - PySpark creates no DataFrame of an RDD of rows
    frame = DataFrame(session.internalCreateDataFrame(rdd, columns, False), spark)  # noqa: FBT003 - Java's own signature
    return evaluate(frame)._jdf.queryExecution().executedPlan()  # noqa: SLF001 - PySpark shows no plans
