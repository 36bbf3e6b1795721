"""What Kafka Streams does to the graph before it writes it: one rule a module, in its order."""

from collections.abc import Callable

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.optimize.merge_repartitions import merge_repartitions
from infra.compiler.dsl.optimize.merge_sources import merge_sources
from infra.compiler.dsl.optimize.self_joins import rewrite_self_joins
from infra.compiler.streams_config import MERGE_REPARTITIONS, SINGLE_STORE_SELF_JOIN

RULES: tuple[tuple[str | None, Callable[[Builder], None]], ...] = (
    (None, merge_sources),
    (MERGE_REPARTITIONS, merge_repartitions),
    (SINGLE_STORE_SELF_JOIN, rewrite_self_joins),
)
"""Word of `topology.optimization` (None = always) → rule. Source topics are reused while writing."""


def optimize(builder: Builder) -> None:
    for word, rule in RULES:
        if word is None or word in builder.config.optimizations:
            rule(builder)
