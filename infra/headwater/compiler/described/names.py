"""Patterns of the names of nodes, stores and topics, by the DSL call that creates them (facts 1)."""

import re
from collections.abc import Iterable, Sequence

_INDEX = r"\d{10}"

FOREIGN_KEY_TOPIC = re.compile(
    rf"KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-{_INDEX}-topic"
    r"|.+-subscription-(?:registration|response)-topic"
)
"""Subscription and response topics of foreign-key joins."""

GENERATED = re.compile(rf"(?:KSTREAM|KTABLE|COGROUPKSTREAM|[\w.\-]+-STATE-STORE)\b.*{_INDEX}.*", re.ASCII)
"""All names with a generated index."""

GENERATED_REPARTITION = re.compile(rf"KSTREAM.*-{_INDEX}-repartition", re.ASCII)
"""Repartition topics whose sink and source nodes are generated, too."""

GENERATED_FOREIGN_KEY_TOPIC = re.compile(
    rf"KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-{_INDEX}-topic"
)

JOIN_STORE = re.compile(
    rf"KSTREAM-(?:JOIN|OUTER)(?:THIS|OTHER)-{_INDEX}-store|.+-(?:outer-)?(?:this|other)-join-store"
)
"""Windowed stores of stream-stream joins; other stores can be named so (`Structure.is_join_store`)."""

WINDOWED_NODE = re.compile(rf"KSTREAM-WINDOWED-{_INDEX}|.+-(?:this|other)-windowed")
"""The processor that writes such a store; other processors can be named so (`Structure.windowed`)."""

SHARED_JOIN_STORE = re.compile(rf"KSTREAM-OUTERSHARED-{_INDEX}-store|.+-(?:left|outer)-shared-join-store")
"""Key-value stores of left and outer stream-stream joins."""

_SUBSCRIPTION_STORE = re.compile(rf"KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-{_INDEX}")

COGROUP_NODE = re.compile(rf"COGROUPKSTREAM-AGGREGATE-{_INDEX}|.+-cogroup-agg-\d+")
"""Other processors can have such names, too (`Structure.cogrouped`)."""

TABLE_NODE = re.compile(
    rf"KTABLE-(?:SOURCE|AGGREGATE|REDUCE|MERGE|FILTER|MAPVALUES|TRANSFORMVALUES|JOINTHIS|JOINOTHER)-{_INDEX}"
    rf"|KTABLE-FK-JOIN-.+-{_INDEX}|KSTREAM-TOTABLE-{_INDEX}"
    r"|.+-join-(?:this|other)|.+-(?:subscription|foreign)-(?:receive|join-foreign|join-subscription|response-resolver)"
)
"""Table processors, whose stores are key-value stores (`is_table_node`)."""

TABLE = re.compile(
    rf"KTABLE-(?:SOURCE|AGGREGATE|REDUCE|MERGE|FILTER|MAPVALUES|TRANSFORMVALUES|SUPPRESS)-{_INDEX}"
    rf"|KTABLE-FK-JOIN-OUTPUT-{_INDEX}|KSTREAM-(?:TOTABLE|AGGREGATE|REDUCE)-{_INDEX}"
    rf"|COGROUPKSTREAM-(?:AGGREGATE|MERGE)-{_INDEX}"
)
"""Processors with generated names whose results are a table: only operators of tables are below them."""

TRANSFORM_VALUES_NODE = re.compile(rf"KTABLE-TRANSFORMVALUES-{_INDEX}")
"""Table processors that also use stores of the user."""

TABLE_AGGREGATION_NODE = re.compile(rf"KTABLE-(?:AGGREGATE|REDUCE)-{_INDEX}")
"""Aggregations of grouped tables."""

AGGREGATION_NODE = re.compile(rf"KSTREAM-(?:AGGREGATE|REDUCE)-{_INDEX}")
"""Aggregations of streams, windowed or not; aggregations of cogroups are `Structure.cogrouped`."""

JOIN_NODE = re.compile(
    rf"KSTREAM-(?:JOIN|LEFTJOIN|JOINTHIS|JOINOTHER|OUTERTHIS|OUTEROTHER)-{_INDEX}"
    rf"|KTABLE-(?:JOINTHIS|JOINOTHER)-{_INDEX}|KTABLE-FK-JOIN-SUBSCRIPTION-.+-{_INDEX}"
    r"|.+-(?:outer-)?(?:this|other)-join|.+-join-(?:this|other)"
    r"|.+-subscription-(?:join-foreign|response-resolver)"
)
"""Processors that read the other side's store; others can be named so (`Structure.is_join`)."""

STREAM_JOIN_NAME = re.compile(
    rf"KSTREAM-(?:JOIN|OUTER)(?:THIS|OTHER)-{_INDEX}|.+-(?:outer-)?(?:this|other)-join"
)
TABLE_JOIN_NAME = re.compile(r"(.+)-join-(?:this|other)")

RESOLVER_NODE = re.compile(
    rf"KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-{_INDEX}|.+-subscription-response-resolver"
)
"""The processor before the result of a foreign-key join; it also has the sources of the left table."""

CUSTOM_NODE = re.compile(rf"KSTREAM-(?:PROCESSOR|PROCESSVALUES|TRANSFORM|TRANSFORMVALUES)-{_INDEX}")
"""Processors of the user."""

_SUPPRESS_STORE = re.compile(rf"KTABLE-SUPPRESS-STATE-STORE-{_INDEX}")
_SUPPRESS_NODE = re.compile(rf"KTABLE-SUPPRESS-{_INDEX}")
_FOREIGN_KEY_NODE = re.compile(rf"KTABLE-FK-JOIN-SUBSCRIPTION-.+-{_INDEX}|.+-subscription-.+")
_TABLE_SOURCE = re.compile(rf"KTABLE-SOURCE-{_INDEX}")
_SOURCE = re.compile(rf"KSTREAM-SOURCE-{_INDEX}")
_NUMBER = re.compile(_INDEX)
_NAMED_WINDOWED = re.compile(r"-(?:this|other)-windowed$")
_CHILD_OF_WINDOWED = re.compile(rf"KSTREAM-(?:(?:JOIN|OUTER)(?:THIS|OTHER)|MERGE)-{_INDEX}")
_NAMED_COGROUP = re.compile(r"-cogroup-agg-\d+$")
_COGROUP_MERGE = re.compile(rf"COGROUPKSTREAM-MERGE-{_INDEX}")


def is_child_of_windowed(child: str, windowed: str) -> bool:
    """Return whether a stream-stream join names the child of its node `windowed` so.

    With `single.store.self.join` the child is the processor with the name of the merge.
    """
    name, side = _NAMED_WINDOWED.sub("", windowed), windowed.removesuffix("-windowed").rpartition("-")[2]
    if name == windowed:
        return _CHILD_OF_WINDOWED.fullmatch(child) is not None
    return child in {f"{name}-{side}-join", f"{name}-outer-{side}-join", f"{name}-merge"}


def is_merge_of_cogroup(merge: str, aggregation: str) -> bool:
    """Return whether the same call names both nodes of a cogroup so."""
    name = _NAMED_COGROUP.sub("", aggregation)
    if name == aggregation:
        return _COGROUP_MERGE.fullmatch(merge) is not None
    return merge == f"{name}-cogroup-merge"


def is_store_of_side(store: str, reader: str) -> bool:
    """Return whether a join's processor `reader` does not write to the side of the store itself."""
    side = "this" if store.endswith("-this-join-store") or "THIS" in store else "other"
    return not reader.endswith(f"-{side}-join") and f"{side.upper()}-" not in reader


def is_subscription_store(store: str, users: Iterable[str]) -> bool:
    """Return whether a store belongs to a foreign-key join: a named store is used by a named processor."""
    receiver = f"{store.removesuffix('-store')}-receive"
    if _SUBSCRIPTION_STORE.fullmatch(store):
        return all(map(_FOREIGN_KEY_NODE.fullmatch, users))
    return store.endswith("-subscription-store") and receiver in users


def is_suppression(node: str, store: str) -> bool:
    """Return whether `suppress` generated the names of a node and its store, one after the other."""
    return (
        _SUPPRESS_STORE.fullmatch(store) is not None
        and _SUPPRESS_NODE.fullmatch(node) is not None
        and index_in(store) == (index_in(node) or 0) + 1
    )


def is_source_table(node: str, source: str) -> bool:
    """Return whether `table` named a processor and the source above it; it generates both names at once."""
    if source == f"{node}-source":
        return True
    return (
        _TABLE_SOURCE.fullmatch(node) is not None
        and _SOURCE.fullmatch(source) is not None
        and index_in(node) == (index_in(source) or 0) + 1
    )


def is_table_node(node: str, parents: Iterable[str]) -> bool:
    """Return whether a node is a table processor: `X-result` is one after a foreign-key join only."""
    is_result = node.endswith("-result") and any(map(RESOLVER_NODE.fullmatch, parents))
    return is_result or TABLE_NODE.fullmatch(node) is not None


def is_grace_buffer(node: str, store: str, stores: Sequence[str]) -> bool:
    """Return whether a store is the buffer of a stream-table join with a grace period.

    Such a join has the table's store, too; an aggregation with a store of this name has no other.
    """
    return store == f"{node}-Buffer" and len(stores) > 1


def index_in(name: str) -> int | None:
    """Return the generated index in a name, None if there is none."""
    found = _NUMBER.search(name)
    return int(found.group()) if found else None


def can_be_explicit(topic: str) -> bool:
    """Return whether `repartition()` may have created the topic, the only call with a partition count."""
    if FOREIGN_KEY_TOPIC.fullmatch(topic):
        return False
    return topic.startswith("KSTREAM-REPARTITION-") or not GENERATED.fullmatch(topic)
