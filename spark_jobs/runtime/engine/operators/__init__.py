"""The operators: what nodes do with records, one factory per behavior of `infra.model.behaviors`."""

from collections.abc import Mapping

from spark_jobs.runtime.engine.operators import (
    joins,
    processors,
    stateless,
    stream_aggregate,
    suppress,
    tables,
)
from spark_jobs.runtime.engine.operators.interface import OperatorFactory

FACTORIES: Mapping[type, OperatorFactory] = {
    **stateless.FACTORIES,
    **stream_aggregate.FACTORIES,
    **tables.FACTORIES,
    **suppress.FACTORIES,
    **processors.FACTORIES,
    **joins.FACTORIES,
}
"""Class of a behavior → factory of its operator."""
