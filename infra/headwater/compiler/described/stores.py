"""Finds the stores of a described topology, their kinds, and the operators that `suppress` uses.

The buffer of a suppression `X` is `X-store` if `X` is a user's name. Other processors can have a store of
this name, too, so the processor before it decides: a suppression follows a table.
"""

from collections.abc import Collection, Mapping

import attrs

from headwater.compiler.described.names import (
    GENERATED,
    TABLE,
    TRANSFORM_VALUES_NODE,
    is_grace_buffer,
    is_source_table,
    is_subscription_store,
    is_suppression,
    is_table_node,
)
from headwater.compiler.described.structure import Structure
from headwater.compiler.version_differences import JOIN_CHANGELOGS_DELETED, JOIN_STORES_WITH_HEADERS
from headwater.model.nodes import ChangelogKind, ProcessorNode, SourceNode, StateStore
from headwater.model.topology import StoreDetail
from headwater.model.versions import KafkaStreamsVersion

_KINDS_OF_BUFFERS = ("keyValue", "timestampedKeyValue")


@attrs.frozen
class Suppressions:
    """Names of processors.

    `generated` are suppressions. `after_tables` are suppressions or, printed in the same way, other operators
    of tables. `unclear` may also be aggregations of streams, whose stores may be windowed.
    """

    generated: frozenset[str]
    after_tables: frozenset[str]
    unclear: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.generated | self.after_tables | self.unclear

    @property
    def with_buffer(self) -> frozenset[str]:
        """The processors whose store is certainly a key-value store."""
        return self.generated | self.after_tables


def find_suppressions(structure: Structure, details: Mapping[str, StoreDetail]) -> Suppressions:
    """Return the suppressions of a text; `details` are details of the document, by store."""
    generated: set[str] = set()
    after_tables: set[str] = set()
    unclear: set[str] = set()
    for node in structure.nodes.values():
        if not isinstance(node, ProcessorNode) or len(node.stores) != 1:
            continue
        (store,) = node.stores
        if is_suppression(node.name, store):
            generated.add(node.name)
        elif store == f"{node.name}-store" and len(node.parents) == 1 and _may_be_buffer(details.get(store)):
            follows_table = _is_table_result(node.parents[0], structure)
            if follows_table is not False:
                (after_tables if follows_table else unclear).add(node.name)
    return Suppressions(frozenset(generated), frozenset(after_tables), frozenset(unclear))


def _may_be_buffer(detail: StoreDetail | None) -> bool:
    return detail is None or detail.kind is None or detail.kind in _KINDS_OF_BUFFERS


def _is_table_result(name: str, structure: Structure) -> bool | None:
    """Return whether the result of a node is a table; None = names and structure do not show it."""
    pending, seen = [name], set[str]()
    while pending:
        name = pending.pop()
        node = structure.nodes.get(name)
        if name in seen or not isinstance(node, ProcessorNode):
            continue
        seen.add(name)
        if TABLE.fullmatch(name) or name in structure.cogroup_merges or _is_named_table(node, structure):
            return True if len(seen) == 1 else None
        if GENERATED.fullmatch(name):
            continue  # an operator of streams
        if node.stores:
            return None
        pending += node.parents
    return False


def _is_named_table(node: ProcessorNode, structure: Structure) -> bool:
    source = structure.nodes.get(f"{node.name}-source")
    return isinstance(source, SourceNode) and node.parents == (source.name,)


KINDS = {
    "keyValue": ChangelogKind.KEY_VALUE,
    "timestampedKeyValue": ChangelogKind.KEY_VALUE,
    "versionedKeyValue": ChangelogKind.VERSIONED,
    "window": ChangelogKind.WINDOWED,
    "timestampedWindow": ChangelogKind.WINDOWED,
    "session": ChangelogKind.WINDOWED,
    "windowed": ChangelogKind.WINDOWED,
}
"""The values of `describe.stores.<name>.kind`."""
_CERTAIN = (ChangelogKind.WINDOWED, ChangelogKind.WINDOWED_DUPLICATES)
"""The kinds of the stores of stream-stream joins, which the text shows."""


@attrs.frozen
class StoreFinding:
    """A store of the text; `kind` None = the text does not show it."""

    name: str
    node: str
    kind: ChangelogKind | None
    detail: StoreDetail | None
    version: KafkaStreamsVersion
    source_topic: str | None = None
    is_global: bool = False
    is_internal: bool = False
    """Whether Kafka Streams adds the store by itself: an application cannot configure it."""
    may_be_versioned: bool = False
    """Whether a supplier may have created it; such stores have names of users."""

    @property
    def unknown(self) -> tuple[str, ...]:
        """Return the names of the details that the text does not show.

        The kind decides whether there is a retention, too.
        """
        if not self._has_changelog:
            return ()
        kinds = {
            None: ("kind",),
            ChangelogKind.KEY_VALUE: ("kind",) if self.may_be_versioned else (),
        }
        return (
            *kinds.get(self.kind, ("retention",)),
            *(() if self.is_internal else ("logging", "overrides")),
        )

    @property
    def effective_kind(self) -> ChangelogKind:
        """Return the kind from the text if it is certain, else from the document, the text, or key-value."""
        if self.kind in _CERTAIN or self.detail is None:
            return self.kind or ChangelogKind.KEY_VALUE
        if self.detail.kind is None:
            return self.kind or ChangelogKind.KEY_VALUE
        given = KINDS.get(self.detail.kind, ChangelogKind.KEY_VALUE)
        if given is ChangelogKind.WINDOWED and self.detail.retain_duplicates and self.detail.kind == "window":
            return _with_duplicates(self.version)
        return given

    @property
    def is_windowed(self) -> bool:
        """Return whether it is known to be a window or session store."""
        return self.effective_kind in _CERTAIN

    @property
    def missing(self) -> tuple[str, ...]:
        """Return `kind` or `retention` if the changelog's config needs it."""
        if not self._has_changelog:
            return ()
        if self.kind is None and self.detail is None:
            return ("kind",)
        needs = self.effective_kind is not ChangelogKind.KEY_VALUE
        overridden = self.detail is not None and _COMPUTED[self.effective_kind] in self.detail.overrides
        return ("retention",) if needs and not overridden and self._retention is None else ()

    @property
    def _has_changelog(self) -> bool:
        if self.is_global or self.source_topic is not None:
            return False
        return self.detail is None or (self.detail.logging and self.detail.source_topic is None)

    @property
    def _retention(self) -> int | None:
        return self.detail.retention_ms if self.detail is not None else None

    def store(self) -> StateStore:
        """Return the store for the node topology."""
        detail = self.detail or StoreDetail()
        return StateStore(
            name=self.name,
            kind=self.effective_kind,
            logged=detail.logging and not self.is_global,
            overrides=detail.overrides,
            base_ms=self._retention,
            changelog_topic=None if self.is_global else detail.source_topic or self.source_topic,
            is_global=self.is_global,
        )


_COMPUTED = {
    ChangelogKind.KEY_VALUE: "",
    ChangelogKind.VERSIONED: "min.compaction.lag.ms",
    ChangelogKind.WINDOWED: "retention.ms",
    ChangelogKind.WINDOWED_DUPLICATES: "retention.ms",
}


def find_stores(
    structure: Structure,
    details: Mapping[str, StoreDetail],
    version: KafkaStreamsVersion,
    *,
    reuses_sources: bool,
) -> tuple[StoreFinding, ...]:
    """Return all stores of the text in the order of their first use.

    With `reuses_sources` (`reuse.ktable.source.topics`) the topic of a table is the changelog of its store.
    """
    suppressing = find_suppressions(structure, details).with_buffer
    # Once for each processor, not for each of its stores: it may have thousands.
    buffering = frozenset(
        user.name
        for user in structure.nodes.values()
        if isinstance(user, ProcessorNode)
        and any(is_grace_buffer(user.name, s, user.stores) for s in user.stores)
    )
    return tuple(
        StoreFinding(
            name=name,
            node=users[0].name,
            kind=_kind_of(name, users, structure, version, suppressing=suppressing, buffering=buffering),
            detail=details.get(name),
            version=version,
            source_topic=_source_table_topic(name, users, structure)
            if reuses_sources and not _has_own_changelog(details.get(name))
            else None,
            is_global=users[0].name in structure.global_nodes,
            is_internal=is_subscription_store(name, [user.name for user in users])
            or any(is_grace_buffer(user.name, name, user.stores) for user in users),
            may_be_versioned=GENERATED.fullmatch(name) is None
            and not _is_auxiliary(name, users, structure, suppressing),
        )
        for name, users in structure.users.items()
    )


def _with_duplicates(version: KafkaStreamsVersion) -> ChangelogKind:
    """Return how the changelog of a window store with duplicates is configured."""
    is_deleted = JOIN_CHANGELOGS_DELETED.is_in(version)
    return ChangelogKind.WINDOWED_DUPLICATES if is_deleted else ChangelogKind.WINDOWED


def table_topic(name: str, structure: Structure) -> str | None:
    """Return the topic of the source table with the store `name`, None for other stores."""
    return _source_table_topic(name, structure.users.get(name, ()), structure)


def _source_table_topic(name: str, users: tuple[ProcessorNode, ...], structure: Structure) -> str | None:
    for user in users:
        parent = structure.nodes.get(user.parents[0]) if len(user.parents) == 1 else None
        if (
            isinstance(parent, SourceNode)
            and len(parent.topics) == 1
            and user.stores == (name,)
            and is_source_table(user.name, parent.name)
            and not parent.topics[0].endswith("-repartition")
        ):
            return parent.topics[0]
    return None


def _has_own_changelog(detail: StoreDetail | None) -> bool:
    return detail is not None and detail.has_own_changelog


def _kind_of(
    name: str,
    users: tuple[ProcessorNode, ...],
    structure: Structure,
    version: KafkaStreamsVersion,
    *,
    suppressing: Collection[str],
    buffering: Collection[str],
) -> ChangelogKind | None:
    """Return the kind that names and structure show, None if several are possible.

    `suppressing` are the processors with the buffer of a suppression, `buffering` those with the buffer of a
    join with a grace period.
    """
    if _is_auxiliary(name, users, structure, suppressing):
        return ChangelogKind.KEY_VALUE
    if structure.is_join_store(name):
        return _with_duplicates(version)
    if any(user.name in structure.windowed for user in users):
        has_headers = JOIN_STORES_WITH_HEADERS.is_in(version)
        return ChangelogKind.WINDOWED if has_headers else _with_duplicates(version)
    if any(user.name in buffering for user in users):
        return ChangelogKind.VERSIONED
    is_table = _source_table_topic(name, users, structure) is not None or _writes_table(users, structure)
    return ChangelogKind.KEY_VALUE if is_table else None


def _is_auxiliary(
    name: str, users: tuple[ProcessorNode, ...], structure: Structure, suppressing: Collection[str]
) -> bool:
    """Return whether Kafka Streams adds the store: of a suppression, a grace period, a left or outer join."""
    return (
        structure.is_shared_join_store(name)
        or is_subscription_store(name, [user.name for user in users])
        or any(user.name in suppressing or is_grace_buffer(user.name, name, user.stores) for user in users)
    )


def _writes_table(users: tuple[ProcessorNode, ...], structure: Structure) -> bool:
    """Return whether a table operator writes the store, not an aggregation of a stream or a join.

    `transformValues` shows nothing: it may use stores of the user, of any kind.
    """
    if any(structure.is_aggregation(user.name) for user in users):
        return False
    return any(
        is_table_node(user.name, user.parents)
        and not (structure.is_join(user.name) or TRANSFORM_VALUES_NODE.fullmatch(user.name))
        for user in users
    )
