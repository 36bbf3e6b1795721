"""The mutable state of a build: index counter, graph, co-partition groups, state of handles, problems.

It is used only during a build; `build_dsl` returns frozen values.
"""

import re
from collections.abc import Iterable

import attrs

from headwater.compiler.dsl.declarations import Declaration, RepartitionDeclaration
from headwater.compiler.dsl.graph import Graph, GraphNode
from headwater.compiler.dsl.handles import CogroupedStream, GroupedStream, GroupedTable, InvalidHandle, Stream
from headwater.compiler.dsl.messages import topology_error
from headwater.compiler.streams_config import StreamsConfig
from headwater.compiler.version_differences import FIRST_KEY_CHANGE_FOUND
from headwater.model.formats import RecordFormat
from headwater.model.nodes import RepartitionTopic
from headwater.model.problems import Location, Problem, ProblemCode
from headwater.model.stores import Materialized

_LONGEST_NAME = 249
_LEGAL_NAME = re.compile(r"[A-Za-z0-9._-]+")
_INDEX = re.compile(r"-\d{10}")

REPARTITION_SUFFIX = "-repartition"
_GENERATED_STREAM_NAME = re.compile(r"KSTREAM.*-[0-9]{10}")


class Names:
    """The index counter of one `InternalStreamsBuilder`: it starts at 0, for processors and stores."""

    def __init__(self) -> None:
        self._next = 0
        self._generated: set[str] = set()

    def processor(self, prefix: str) -> str:
        """Return the prefix with the next index (`InternalStreamsBuilder#newProcessorName`)."""
        name = f"{prefix}{self._next:010d}"
        self._next += 1
        self._generated.add(name)
        return name

    def store(self, prefix: str) -> str:
        """Return a store's name with the next index (`InternalStreamsBuilder#newStoreName`)."""
        return self.processor(prefix + "STATE-STORE-")

    def skip_index(self) -> None:
        """Take an index without a name: Kafka Streams generates a name that it does not use."""
        self._next += 1

    def given_or_next(self, given: str | None, prefix: str) -> str:
        """Return the user's name, or a generated one; both take an index."""
        if given is None:
            return self.processor(prefix)
        self.skip_index()
        return given

    def carries_index(self, name: str) -> bool:
        """Return whether `name` is or starts with a name that this counter generated."""
        return any(name[: index.end()] in self._generated for index in _INDEX.finditer(name))


def name_error(name: str) -> str | None:
    """Return why `Named#validate` rejects a name, None if it is valid."""
    if not name:
        return "it is empty"
    if name in {".", ".."}:
        return 'it is "." or ".."'
    if len(name) > _LONGEST_NAME:
        return f"it has {len(name)} characters, more than {_LONGEST_NAME}"
    if not _LEGAL_NAME.fullmatch(name):
        return "it has a character other than ASCII letters, digits, '.', '_' and '-'"
    return None


def repartition_topic(prefix: str) -> str:
    """Return the repartition topic of a stream, without the application id; the suffix is not repeated."""
    return prefix if prefix.endswith(REPARTITION_SUFFIX) else prefix + REPARTITION_SUFFIX


TABLE_OF_ITS_OWN = (
    "Before the join, call `toStream`, `repartition` and `toTable`: then the topic of the repartition gets "
    "the count of the other side."
)
"""How a table gets a source node: there is no `repartition` of a table."""


def looks_generated(prefix: str) -> bool:
    """Return whether the nodes of a repartition with this prefix keep their generated names."""
    return _GENERATED_STREAM_NAME.fullmatch(prefix) is not None


@attrs.frozen
class NonSource:
    """A name in a co-partition group that is not a source node; `instead` are the sources that are read.

    `fix` says how the call gets a source node of its own.
    """

    reason: str
    instead: frozenset[str]
    fix: str


@attrs.define(eq=False)
class UnnamedResources:
    """Generated names, as Kafka Streams lists them for explicit naming (facts 1.8)."""

    changelogs: list[str] = attrs.field(factory=list)
    stores: list[str] = attrs.field(factory=list)
    repartitions: list[str] = attrs.field(factory=list)

    def __bool__(self) -> bool:
        return bool(self.changelogs or self.stores or self.repartitions)


@attrs.define(eq=False)
class Builder:
    """The state that each call of a document reads and changes."""

    config: StreamsConfig
    names: Names = attrs.field(factory=Names)
    graph: Graph = attrs.field(
        default=attrs.Factory(
            lambda self: Graph(searches_all_parents=FIRST_KEY_CHANGE_FOUND.is_in(self.config.version)),
            takes_self=True,
        )
    )
    problems: list[Problem] = attrs.field(factory=list)
    at: Location | None = None
    """The location of the current call."""

    copartition_groups: list[set[str]] = attrs.field(factory=list)
    group_origins: list[Location | None] = attrs.field(factory=list)
    non_sources: dict[str, NonSource] = attrs.field(factory=dict)
    foreign_key_topics: list[RepartitionTopic] = attrs.field(factory=list)
    unnamed: UnnamedResources = attrs.field(factory=UnnamedResources)

    stream_repartitions: dict[Stream, GraphNode] = attrs.field(factory=dict)
    """The last repartition node that a join added for this `KStream` object (facts 1.7)."""
    group_repartitions: dict[GroupedStream | GroupedTable, GraphNode] = attrs.field(factory=dict)
    cogroup_inputs: dict[CogroupedStream, dict[GroupedStream, str | None]] = attrs.field(factory=dict)
    """The inputs in the order of the `cogroup` calls, each with its aggregator."""
    cogroups_of_sources: list[tuple[str, frozenset[str], Location | None]] = attrs.field(factory=list)
    """Store, group and location of each cogroup whose group names sources upstream of a repartition."""
    cogroup_repartitions: dict[CogroupedStream, dict[GroupedStream, GraphNode]] = attrs.field(factory=dict)

    mergeable: dict[GraphNode, dict[GraphNode, None]] = attrs.field(factory=dict)
    """Key-changing nodes in order, each with the repartitions that the optimization may move up to it."""
    merges: list[GraphNode] = attrs.field(factory=list)
    other_windowed: dict[GraphNode, GraphNode] = attrs.field(factory=dict)
    """Stream-stream join → the node that windows its other side."""
    renamed_sources: dict[str, str] = attrs.field(factory=dict)
    """Repartition source that the optimization removed → its replacement."""

    def reject(self, problem: Problem) -> InvalidHandle:
        """Report a problem of the current call."""
        self.problems.append(problem.located(location=self.at))
        return InvalidHandle()

    # names

    def check_name(self, name: str | None, what: str) -> None:
        """Check a user's name (`Named#validate`)."""
        fault = name_error(name) if name is not None else None
        if fault is not None:
            shown = f'"{name}"'
            self.reject(
                topology_error(
                    f"The {what} {shown} is not a valid name: {fault}.",
                    code=ProblemCode.INVALID_NAME,
                    node=name,
                    expected="1 to 249 of A-Z a-z 0-9 . _ -, neither . nor ..",
                    found=shown,
                    fix="Choose another name.",
                )
            )

    def named(self, given: str | None, prefix: str) -> str:
        return self.names.given_or_next(given, prefix)

    def suffixed(self, given: str | None, suffix: str, prefix: str) -> str:
        """Return the user's name with `suffix`, checked for its length, or a generated name.

        Both take one index.
        """
        if given is None:
            return self.names.processor(prefix)
        self.names.skip_index()
        if name_error(given) is None:
            self.check_name(given + suffix, "name")
        return given + suffix

    def store_name(self, materialized: Materialized | None, prefix: str) -> str:
        """Return the store's name; a generated one is listed as unnamed even if no store is created."""
        given = materialized.store_name if materialized is not None else None
        if given is not None:
            return given
        name = self.names.store(prefix)
        logging = materialized.logging if materialized is not None else None
        self.list_unnamed_store(name, logged=logging is None or logging.enabled)
        return name

    def list_unnamed_store(self, name: str, *, logged: bool) -> None:
        self.unnamed.stores.append(name)
        if logged:
            self.unnamed.changelogs.append(name + "-changelog")

    # graph

    def add(
        self,
        name: str,
        declares: Declaration,
        *parents: GraphNode,
        changes_key: bool = False,
        changes_value: bool = False,
        is_merge: bool = False,
        relaxes_null_keys: bool = False,
        versioned: bool | None = None,
        grace_ms: int | None = None,
    ) -> GraphNode:
        """Add a node below `parents`, without parents below the root."""
        node = GraphNode(
            name,
            declares,
            self.at,
            changes_key=changes_key,
            changes_value=changes_value,
            is_merge=is_merge,
            relaxes_null_keys=relaxes_null_keys,
            versioned=versioned,
            grace_ms=grace_ms,
        )
        return self.attach(node, *parents or (self.graph.root,))

    def attach(self, node: GraphNode, *parents: GraphNode) -> GraphNode:
        """Attach a node and note it for optimizations; a shared repartition is attached several times."""
        self.graph.attach(node, *parents)
        if node.changes_key:
            self.mergeable[node] = {}
        elif isinstance(node.declares, RepartitionDeclaration) and node.declares.mergeable:
            if node.key_changer is not None and node.key_changer is node.changer:
                self.mergeable[node.key_changer][node] = None
        elif node.is_merge:
            self.merges.append(node)
        return node

    def repartition(
        self,
        prefix: str,
        record: RecordFormat,
        *,
        named_by_user: bool,
        partitions: int | None = None,
        explicit: bool = False,
        partitioner: str | None = None,
    ) -> GraphNode:
        """Return a repartition node that is not attached yet; takes the indices of sink, filter and source.

        Source: `OptimizableRepartitionNode`, `KStreamImpl#createRepartitionedSource`.
        """
        topic = repartition_topic(prefix)
        if not named_by_user:
            self.unnamed.repartitions.append(topic)
        sink = self.names.processor("KSTREAM-SINK-")
        null_key_filter = self.names.processor("KSTREAM-FILTER-")
        source = self.names.processor("KSTREAM-SOURCE-")
        if not looks_generated(prefix):
            sink, null_key_filter, source = f"{topic}-sink", f"{topic}-filter", f"{topic}-source"
        return GraphNode(
            source,
            RepartitionDeclaration(
                topic,
                sink,
                source,
                null_key_filter,
                partitions,
                mergeable=not explicit,
                explicit=explicit,
                record=record,
                partitioner=partitioner,
            ),
            self.at,
        )

    def copartition(self, sources: Iterable[str]) -> frozenset[str]:
        """Register source nodes as a co-partition group."""
        group = set(sources)
        self.copartition_groups.append(group)
        self.group_origins.append(self.at)
        return frozenset(group)

    def note_shared_repartition(self, name: str, shared: GraphNode, fix: str) -> None:
        """Note that a call that shares an earlier repartition names a source node that is not added.

        `fix` says how the call gets a repartition of its own.
        """
        if name != shared.name:
            self.note_non_source(
                name,
                f"{name} was never added: the call reads the repartition topic of an earlier call ("
                f"{shared.name})",
                {shared.name},
                fix,
            )

    def note_non_source(self, name: str, reason: str, instead: Iterable[str], fix: str) -> None:
        self.non_sources.setdefault(name, NonSource(reason, frozenset(instead), fix))
