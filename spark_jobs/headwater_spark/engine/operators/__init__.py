"""The operators: what nodes do with records, one factory per behavior of `headwater.model.behaviors`."""

from collections.abc import Mapping

from headwater_spark.engine.operators import joins, processors, stateless, stream_aggregate, tables
from headwater_spark.engine.operators.interface import OperatorFactory

FACTORIES: Mapping[type, OperatorFactory] = {
    **stateless.FACTORIES,
    **stream_aggregate.FACTORIES,
    **tables.FACTORIES,
    **processors.FACTORIES,
    **joins.FACTORIES,
}
"""Class of a behavior → factory of its operator."""
