"""Joins: stream-stream, stream-table, table-table, and foreign-key.

The parameters of a joiner are `left`, `right`, `key`, whichever side the current record is from.
"""

from collections.abc import Mapping

from headwater_spark.engine.operators.interface import OperatorFactory
from headwater_spark.engine.operators.joins import foreign_key, stream_stream, table_joins

FACTORIES: Mapping[type, OperatorFactory] = {
    **stream_stream.FACTORIES,
    **table_joins.FACTORIES,
    **foreign_key.FACTORIES,
}
