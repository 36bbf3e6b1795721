"""Documents with what is visible of an application on a cluster, instead of calls (`observed`)."""

from typing import Any

from headwater.model.nodes import TopicKind
from headwater.model.observed import ObservedTopic, ObservedTopology, Unknown
from headwater.model.problems import Location
from headwater.spec.build_stores import Options, config
from headwater.spec.locations import PathPart, RawDocument


def observed_topology(raw: RawDocument, options: Options) -> ObservedTopology:
    """Return the observed topics, with locations of topics, sources and open questions."""
    return ObservedTopology(
        topics=tuple(_topic(raw, name, given) for name, given in options["topics"].items()),
        at=_at(raw, "observed"),
        sources=dict(options.get("sources", {})),
        locations={topic: _at(raw, "observed", "sources", topic) for topic in options.get("sources", {})},
        unknown={
            Unknown(word): _at(raw, "observed", "unknown", index)
            for index, word in enumerate(options["unknown"])
        },
    )


def _topic(raw: RawDocument, name: str, options: dict[str, Any]) -> ObservedTopic:
    return ObservedTopic(
        name=name,
        kind=TopicKind(options["kind"]),
        partitions=options["partitions"],
        replication_factor=options.get("replicationFactor", -1),
        config=config(options["config"]) if "config" in options else None,
        at=_at(raw, "observed", "topics", name),
    )


def _at(raw: RawDocument, *path: PathPart) -> Location:
    return raw.location(path, at_key=isinstance(path[-1], str)) or Location(raw.file)
