"""Documents with the topology that the code of an application builds (`exported`).

A user may add configs to `application.config`, which the code does not have. A declared value that is not the
exported one is an error: the topics would not be what the code needs.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from headwater.compiler.described.names import GENERATED
from headwater.model.nodes import (
    ChangelogKind,
    Node,
    NodeTopology,
    ProcessorNode,
    RepartitionTopic,
    SinkNode,
    SourceNode,
    StateStore,
)
from headwater.model.problems import Location, Problem, ProblemCode, shorten_text
from headwater.model.topology import ExportedTopology
from headwater.model.versions import logged_version, read_any_version
from headwater.spec.build_stores import Options, read_duration, read_topic_config
from headwater.spec.locations import PathPart, Position, RawDocument, mapping_of
from headwater.spec.scalars import config_text

_SECTION = "exported"
_KINDS = {
    "keyValue": ChangelogKind.KEY_VALUE,
    "windowed": ChangelogKind.WINDOWED,
    "versioned": ChangelogKind.VERSIONED,
}
_NODE_KINDS = (("source",), ("pattern",), ("sink", "parents"), ("extractor", "parents"), ("parents",))
_SUFFIX = "-repartition"


def exported_topology(
    raw: RawDocument, options: Options
) -> tuple[ExportedTopology | None, tuple[Problem, ...]]:
    """Return the topology; problems if the section was edited so that its parts do not fit together."""
    reading = _Reading(raw, options)
    problems = tuple(reading.problems())
    return (None, problems) if problems else (reading.topology(), ())


@attrs.frozen
class _Given:
    """A node of the document with its sub-topology."""

    name: str
    group: str
    options: Options
    is_global: bool


class _Reading:
    def __init__(self, raw: RawDocument, options: Options) -> None:
        self._raw = raw
        self._options = options
        self._nodes = [
            _Given(name, group, node, part.get("global", False))
            for group, part in sorted(options["subtopologies"].items(), key=lambda item: int(item[0]))
            for name, node in part["nodes"].items()
        ]

    def topology(self) -> ExportedTopology:
        nodes = tuple(self._build_node(given) for given in self._nodes)
        global_nodes = frozenset(given.name for given in self._nodes if given.is_global)
        internal: Mapping[str, Options] = self._options["repartitionTopics"]
        stores: Mapping[str, Options] = self._options["stores"]
        of_global = {
            store for given in self._nodes if given.is_global for store in given.options.get("stores", ())
        }
        names = [*stores, *(topic.removesuffix(_SUFFIX) for topic in internal)]
        return ExportedTopology(
            nodes=NodeTopology(
                nodes,
                stores=tuple(
                    self._build_store(name, store, is_global=name in of_global)
                    for name, store in stores.items()
                ),
                global_nodes=global_nodes,
                repartition_topics=tuple(
                    RepartitionTopic(
                        name,
                        is_foreign_key=not name.endswith(_SUFFIX),
                        partitions=topic.get("partitions"),
                        at=self._location_at("repartitionTopics", name),
                    )
                    for name, topic in internal.items()
                ),
                copartition_groups=tuple(map(frozenset, self._options["copartitioned"])),
                generated_names=frozenset(name for name in names if GENERATED.fullmatch(name)),
                printed_groups={given.name: int(given.group) for given in self._nodes},
                name=self._options.get("name"),
            ),
            at=self._location_at(),
            partitioners={
                given.name: given.options["partitioner"]
                for given in self._nodes
                if "partitioner" in given.options
            },
        )

    def _build_node(self, given: _Given) -> Node:
        options = given.options
        at = self._location_at("subtopologies", given.group, "nodes", given.name)
        parents = tuple(options.get("parents", ()))
        if "source" in options or "pattern" in options:
            return SourceNode(given.name, tuple(options.get("source", ())), options.get("pattern"), at)
        if "sink" in options or "extractor" in options:
            return SinkNode(given.name, parents, options.get("sink"), options.get("extractor"), at)
        return ProcessorNode(given.name, parents, tuple(options.get("stores", ())), at)

    def _build_store(self, name: str, options: Options, *, is_global: bool) -> StateStore:
        users = frozenset(given.name for given in self._nodes if name in given.options.get("stores", ()))
        owners = frozenset(options.get("owners", ()))
        return StateStore(
            name=name,
            kind=_KINDS[options["kind"]],
            logged=options.get("logging", True) and not is_global,
            overrides=read_topic_config(options.get("overrides")),
            base_ms=read_duration(options, "retention"),
            changelog_topic=None if is_global else options.get("sourceTopic"),
            is_global=is_global,
            connections=(users - owners, owners) if "owners" in options else (),
            at=self._location_at("stores", name),
        )

    def _location_at(self, *path: PathPart) -> Location:
        return self._raw.location((_SECTION, *path), at_key=True) or Location(self._raw.file)

    def problems(self) -> Iterator[Problem]:
        groups: dict[str, str] = {}
        for given in self._nodes:
            path = ("subtopologies", given.group, "nodes", given.name)
            if given.name in groups:
                yield self._topology_problem(
                    f"The node {shorten_text(given.name)} is in two sub-topologies.",
                    "one sub-topology for each node",
                    f"{groups[given.name]} and {given.group}",
                    path,
                )
            groups[given.name] = given.group
            yield from self._kind_problems(given, path)
        for given in self._nodes:
            path = ("subtopologies", given.group, "nodes", given.name)
            own = {name for name, group in groups.items() if group == given.group}
            yield from self._unknown_names(given.options.get("parents", ()), own, (*path, "parents"))
            yield from self._unknown_names(
                given.options.get("stores", ()), self._options["stores"], (*path, "stores")
            )
        yield from self._topic_problems()
        sources = {each.name for each in self._nodes if {"source", "pattern"} & each.options.keys()}
        for index, group in enumerate(self._options["copartitioned"]):
            yield from self._unknown_names(group, sources, ("copartitioned", index))

    def _kind_problems(self, given: _Given, path: tuple[PathPart, ...]) -> Iterator[Problem]:
        shown = tuple(
            key for key in ("source", "pattern", "sink", "extractor", "parents") if key in given.options
        )
        of_sink = {"sink", "extractor"} & given.options.keys()
        is_fitting = not ("stores" in given.options and shown != ("parents",)) and not (
            "partitioner" in given.options and not of_sink
        )
        if shown not in _NODE_KINDS or not is_fitting:
            yield self._topology_problem(
                f"The node {shorten_text(given.name)} is neither a source, a sink nor a processor.",
                "`source`, `pattern`, `parents` with `sink` or `extractor`, or `parents` with `stores`",
                ", ".join(f"`{key}`" for key in given.options) or "no key",
                path,
            )

    def _topic_problems(self) -> Iterator[Problem]:
        read = {topic for given in self._nodes for topic in given.options.get("source", ())}
        written = {given.options["sink"] for given in self._nodes if "sink" in given.options}
        for topic in self._options["repartitionTopics"]:
            if topic not in read or topic not in written:
                yield self._topology_problem(
                    f"No {'source reads' if topic in written else 'sink writes'} {topic}.",
                    "a sink that writes each repartition topic, and a source that reads it",
                    "none",
                    ("repartitionTopics", topic),
                )
        for name, store in self._options["stores"].items():
            users = {each.name for each in self._nodes if name in each.options.get("stores", ())}
            yield from self._unknown_names(store.get("owners", ()), users, ("stores", name, "owners"))
            if store["kind"] != "keyValue" and "retention" not in store:
                yield self._topology_problem(
                    f"The store {shorten_text(name)} has no `retention`.",
                    "the retention of a windowed or versioned store",
                    "none",
                    ("stores", name),
                )

    def _unknown_names(
        self, names: Iterable[str], known: Iterable[str], path: tuple[PathPart, ...]
    ) -> Iterator[Problem]:
        allowed = set(known)
        for name in names:
            if name not in allowed:
                yield self._topology_problem(
                    f"`{_SECTION}` names {shorten_text(name)}, which is not there.",
                    ", ".join(sorted(allowed)[:10]) or "no name",
                    shorten_text(name),
                    path,
                )

    def _topology_problem(
        self, summary: str, expected: str, found: str, path: tuple[PathPart, ...]
    ) -> Problem:
        return Problem(
            code=ProblemCode.INVALID_TOPOLOGY,
            summary=summary,
            expected=expected,
            found=found,
            why="Code cannot build such a topology: the section was edited or copied in part.",
            fix="Export the topology again: run the test with `HEADWATER_WRITE=true`, or "
            "`headwater import --jar`.",
            location=self._raw.location((_SECTION, *path)),
        )


_VERSION = "kafkaStreams"


def with_exported_application(raw: RawDocument) -> RawDocument:
    """Return the document with the exported facts in `application`; values that are declared there stay."""
    application, exported = _own_application(raw), _exported_application(raw)
    if application is None or exported is None:
        return raw
    facts = {key: value for key, value in exported.items() if key != "id"}
    if isinstance(facts.get(_VERSION), str):
        facts[_VERSION] = _known_version(facts[_VERSION])
    merged = {**facts, **application}
    declared = mapping_of(application.get("config"))
    if config := {**mapping_of(exported.get("config")), **declared}:
        merged["config"] = config
    own, found = raw.position.child("application"), raw.position.child("exported").child("application")
    position = _join_positions(own, found)
    children = {
        **_children_of(position),
        "config": _join_positions(own.child("config"), found.child("config")),
    }
    positions = {**_children_of(raw.position), "application": position._replace(children=children)}
    return attrs.evolve(
        raw,
        data={**raw.data, "application": merged},
        position=raw.position._replace(children=positions),
    )


def exported_application_problems(raw: RawDocument) -> Iterator[Problem]:
    """Yield a problem for each declared fact that is not the exported one."""
    application, exported = _own_application(raw), _exported_application(raw)
    if application is None or exported is None:
        return
    pairs: list[tuple[tuple[PathPart, ...], object, object]] = [
        ((key,), application[key], exported[key])
        for key in ("id", "protocol")
        if key in application
        if key in exported
    ]
    if _VERSION in application and isinstance(exported.get(_VERSION), str):
        known = read_any_version(_known_version(exported[_VERSION]))
        declared = read_any_version(_value_text(application[_VERSION]))
        if known is None or declared is None or known.release != declared.release:
            pairs.append(((_VERSION,), application[_VERSION], exported[_VERSION]))
    config = mapping_of(exported.get("config"))
    pairs += [
        (("config", key), value, config[key])
        for key, value in mapping_of(application.get("config")).items()
        if key in config
    ]
    for path, declared_value, exported_value in pairs:
        if _value_text(declared_value) != _value_text(exported_value):
            yield _contradicting_value(raw, path, _value_text(declared_value), _value_text(exported_value))


def _known_version(text: str) -> str:
    """Return the version that the library reports, as documents name it: `7.6.0-ccs` is `3.6`."""
    logged = logged_version(f"Kafka Streams version: {text}") or text
    known = read_any_version(logged)
    return text if known is None else str(known)


def _contradicting_value(
    raw: RawDocument, path: tuple[PathPart, ...], declared: str, exported: str
) -> Problem:
    name = ".".join(map(str, path))
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=f"`application.{name}` is not what the code of the application has.",
        expected=f"`{shorten_text(exported)}`, as in `exported`",
        found=f"`{shorten_text(declared)}`",
        why="The application would need other topics than the document declares.",
        fix=(
            "Correct the id. If the application has another id now, give it a document of its own."
            if path == ("id",)
            else f"Remove `{name}` from `application`. If the code has changed, export the topology again."
        ),
        location=raw.location(("application", *path)),
    )


def _own_application(raw: RawDocument) -> dict[str, Any] | None:
    application = raw.section("application")
    return application if isinstance(application, dict) else None


def _exported_application(raw: RawDocument) -> dict[str, Any] | None:
    section = raw.section("exported")
    application = section.get("application") if isinstance(section, dict) else None
    return application if isinstance(application, dict) else None


def _value_text(value: object) -> str:
    return config_text(value) if isinstance(value, str | int | float) else ""


def _children_of(position: Position) -> Mapping[str, Position]:
    return position.children if isinstance(position.children, Mapping) else {}


def _join_positions(own: Position, other: Position) -> Position:
    return own._replace(children={**_children_of(other), **_children_of(own)})
