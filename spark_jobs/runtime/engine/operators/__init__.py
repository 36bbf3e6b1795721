"""One operator for each behavior of `infra.model.behaviors`. `FACTORIES` says which."""

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
"""Behavior's class → how its operator is built. Each module of a family has a table of its own."""
