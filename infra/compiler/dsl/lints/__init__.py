"""What Kafka Streams accepts in silence, or refuses only at the end: one rule a module."""

from collections.abc import Callable, Iterator

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.lints.cogroups import cogroups_of_sources
from infra.compiler.dsl.lints.lost_members import lost_members
from infra.compiler.dsl.lints.null_keys import dropped_null_keys
from infra.compiler.dsl.lints.unnamed_resources import unnamed_resources
from infra.compiler.dsl.topology import TopologyUnderConstruction
from infra.model.problems import Problem

LINTS: tuple[Callable[[Builder, TopologyUnderConstruction], Iterator[Problem]], ...] = (
    unnamed_resources,
    lost_members,
    cogroups_of_sources,
    dropped_null_keys,
)
"""Lints of single calls (ignored retention and logging) stand with the calls."""
