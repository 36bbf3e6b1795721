"""Rows that hold thousands of records of Kafka each, instead of a row for each record.

Spark's connector creates a row for each record, copies it twice, and writes it field by field for the
Python worker. DataFrames have no other way. So the RDD of the connector's records is found in the driver's
JVM, and its records are packed (`PackedRows.java`).
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import structlog
from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from headwater_spark.spark_internals.grouping import group_partitions
from headwater_spark.spark_internals.java_classes import (
    JVM_ENDED,
    OTHER_SPARK,
    RowsFailedError,
    call_method,
    load_methods,
    planned_rows,
    reason_of,
)
from headwater_spark.spark_internals.jvm import java_gateway

_log = structlog.get_logger(__name__)
_METHODS = ("records", "pack")
_SOURCE = Path(__file__).with_name("PackedRows.java")
_CODE = Path(__file__).with_name("PackedRecords.java")
_PLANNED = "LogicalRDD"
_RECORDS_AT_ONCE = 8192
_BYTES_AT_ONCE = 4 * 1024 * 1024
"""Limits of a row. The last record may exceed the bytes: a row has at least one record."""


class RecordPacking:
    """Packs records, as long as this Spark has the private parts that are used.

    Args:
        schema: The fields of a row with packed records, as DDL.
    """

    def __init__(self, schema: str) -> None:
        self._schema = schema
        self._session: JavaObject | None = None
        self._fields: JavaObject | None = None
        self.is_possible = True

    def packed(
        self, rows: DataFrame, groups: Sequence[int] | None, count: int, *, reads_values: bool
    ) -> DataFrame | None:
        """Return the records behind `rows`, packed; None = they have to be read row by row.

        That is so if they do not only come from Kafka, or `groups` has too few partitions.

        Args:
            rows: A DataFrame that is read once, with a row for each record and no others. Its plan is made
                here.
            groups: The group of each partition of a topic, in the order of their numbers: each group becomes
                a Spark partition. None = each input partition becomes one.
            count: The number of groups.
            reads_values: False = only whether there is a value is read.

        Raises:
            Py4JJavaError: Spark cannot plan the rows, for example because a broker does not answer.
        """
        if not self.is_possible:
            return None
        try:
            return self._packed(rows, groups, count, reads_values=reads_values)
        except JVM_ENDED:
            raise
        except RowsFailedError as failed:
            raise failed.error from None
        except OTHER_SPARK as error:
            self.is_possible = False
            _log.warning("records not packed: Spark passes them on row by row", reason=reason_of(error))
            return None

    def _packed(
        self, rows: DataFrame, groups: Sequence[int] | None, count: int, *, reads_values: bool
    ) -> DataFrame | None:
        gateway = java_gateway(rows.sparkSession)
        methods = load_methods(gateway, _SOURCE, _METHODS)
        records = call_method(gateway, methods["records"], _rdd_of(rows))
        if records is not None and groups is not None:
            records = group_partitions(gateway, records, groups, count)
        if records is None:
            return None
        if self._session is None or self._fields is None:
            self._session = _session_of_packed_rows(rows)
            self._fields = gateway.jvm.org.apache.spark.sql.types.StructType.fromDDL(self._schema)
        limits = _RECORDS_AT_ONCE, _BYTES_AT_ONCE
        packed = call_method(gateway, methods["pack"], records, _code(), *limits, reads_values)
        frame = self._session.internalCreateDataFrame(packed, self._fields, False)  # noqa: FBT003 - Java's own signature
        return DataFrame(frame, rows.sparkSession)


@lru_cache(maxsize=1)
def _code() -> str:
    return _CODE.read_text(encoding="utf-8")


def _rdd_of(rows: DataFrame) -> JavaObject:
    """Return the RDD of a DataFrame. The rows of a stream's batch have one, and need no plan."""
    plan = rows._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark shows no plans
    return plan.rdd() if plan.nodeName() == _PLANNED else planned_rows(rows)


def _session_of_packed_rows(rows: DataFrame) -> JavaObject:
    """Return a session that sends each row as soon as it is packed: Arrow batches are limited in rows."""
    session: Any = rows.sparkSession._jsparkSession.cloneSession()  # noqa: SLF001 - PySpark clones no session
    session.conf().set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
    return session
