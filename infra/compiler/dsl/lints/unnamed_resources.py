"""Names that Kafka Streams invents: refused where the user demands names, a hazard elsewhere (facts 1.8)."""

from collections.abc import Iterator

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.refusals import lint, refused
from infra.compiler.dsl.topology import TopologyUnderConstruction
from infra.model.problems import Problem, ProblemCode

_SHOWN = 10


def unnamed_resources(builder: Builder, topology: TopologyUnderConstruction) -> Iterator[Problem]:
    """At most one: an error if `ensure.explicit.internal.resource.naming` is set, otherwise a warning."""
    unnamed = builder.unnamed
    lists = (
        ("changelog topics", unnamed.changelogs),
        ("state stores", unnamed.stores),
        ("repartition topics", unnamed.repartitions),
    )
    found = "; ".join(f"{what}: {_shortened(names)}" for what, names in lists if names)
    if builder.config.explicit_naming and unnamed:
        yield refused(
            "Internal resources have no names of their own, and the application demands them.",
            code=ProblemCode.UNNAMED_RESOURCES,
            expected="a name for each (ensure.explicit.internal.resource.naming=true)",
            found=found,
            fix="Name the operators and stores (`name`, `materialized`, `storeName`), or set "
            "ensure.explicit.internal.resource.naming to false.",
        )
        return
    generated = generated_names(builder, topology)
    if generated:
        yield lint(
            ProblemCode.RENUMBERING_HAZARD,
            f"Generated numbers stand in the names of internal topics and stores ({len(generated)}).",
            expected="names given by the user",
            found=_shortened(sorted(generated)),
            why="The numbers count the calls before: a call added or removed shifts them. Kafka Streams then "
            "makes new topics, and the state and the records in the old ones are left behind.",
            fix="Name operators and stores (`name`, `materialized`, `storeName`) while there is no state.",
        )


def generated_names(builder: Builder, topology: TopologyUnderConstruction) -> frozenset[str]:
    """Stores with a changelog and internal topics whose names carry an index."""
    stores = topology.logged_stores()
    topics = (topic.name for topic in topology.repartition_topics)
    return frozenset(name for name in (*stores, *topics) if builder.names.carries_index(name))


def _shortened(names: list[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
