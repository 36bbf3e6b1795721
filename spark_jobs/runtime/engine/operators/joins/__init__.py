"""Joins: of streams, of a stream with a table, of tables on one key, of tables by foreign key.

A joiner's parameters are `left`, `right`, `key`, whichever side a record comes from.
"""

from collections.abc import Mapping

from spark_jobs.runtime.engine.operators.interface import OperatorFactory
from spark_jobs.runtime.engine.operators.joins import (
    foreign_key,
    self_join,
    stream_stream,
    stream_table,
    table_table,
)

FACTORIES: Mapping[type, OperatorFactory] = {
    **stream_stream.FACTORIES,
    **self_join.FACTORIES,
    **stream_table.FACTORIES,
    **table_table.FACTORIES,
    **foreign_key.FACTORIES,
}
