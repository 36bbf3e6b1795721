"""Optimizations of the graph, in the order of `InternalStreamsBuilder#buildAndOptimizeTopology`."""

from collections.abc import Callable

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.optimize.merge_repartitions import merge_repartitions
from headwater.compiler.dsl.optimize.merge_sources import merge_sources
from headwater.compiler.dsl.optimize.self_joins import rewrite_self_joins
from headwater.compiler.streams_config import MERGE_REPARTITIONS, SINGLE_STORE_SELF_JOIN

RULES: tuple[tuple[str | None, Callable[[Builder], None]], ...] = (
    (None, merge_sources),
    (MERGE_REPARTITIONS, merge_repartitions),
    (SINGLE_STORE_SELF_JOIN, rewrite_self_joins),
)
"""Value of `topology.optimization` (None = always) and rule. `write` reuses source topics as changelogs."""


def optimize(builder: Builder) -> None:
    for word, rule in RULES:
        if word is None or word in builder.config.optimizations:
            rule(builder)
