"""The differences between versions of Kafka Streams that the compiler knows: the only table of them.

Calls and options that an application's version does not have yet are problems (`missing_options`).

`docs/versions.md` explains each with the smallest topology that shows it.
"""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from headwater.compiler.configs.table import Owner, config_names, find_config
from headwater.model import operators as op
from headwater.model import processor_api
from headwater.model.operators import Step
from headwater.model.problems import Location, Problem, ProblemCode
from headwater.model.versions import KafkaStreamsVersion


@attrs.frozen
class Difference:
    """A change of Kafka Streams.

    `since` are the first versions with the change, one for each release that received it as a patch, in
    ascending order. `source` is the Kafka issue or the KIP. `what` is one sentence: what later versions do.
    """

    name: str
    since: tuple[KafkaStreamsVersion, ...]
    source: str
    what: str

    def is_in(self, version: KafkaStreamsVersion) -> bool:
        """Return whether `version` has the change."""
        patched = next((first for first in self.since if first.release == version.release), None)
        return version >= (patched or self.since[-1])

    def is_added(self, before: KafkaStreamsVersion, after: KafkaStreamsVersion) -> bool:
        """Return whether `after` has the change and `before` has not."""
        return self.is_in(after) and not self.is_in(before)

    @property
    def since_text(self) -> str:
        """Return the first versions as text: `4.0.1 and 4.1.1`."""
        return " and ".join(map(str, self.since))


def _versions_since(*versions: str) -> tuple[KafkaStreamsVersion, ...]:
    return tuple(KafkaStreamsVersion(*map(int, version.split("."))) for version in versions)


READ_ONLY_STORES = Difference(
    "read-only-stores", _versions_since("3.8.0"), "KIP-813", "`addReadOnlyStateStore` exists."
)
OFFSET_RESETS = Difference(
    "offset-resets",
    _versions_since("4.0.0"),
    "KIP-1106",
    "A source may start at a duration before now, or without an offset reset (`none`).",
)
UNNAMED_GLOBAL_STORE_FAILS = Difference(
    "unnamed-global-store-fails",
    _versions_since("4.0.0"),
    "KAFKA-18026",
    "A global table whose `Materialized` has no store name cannot be built.",
)
NO_OLD_GUARANTEES = Difference(
    "no-old-guarantees",
    _versions_since("4.0.0"),
    "KAFKA-12689",
    "The guarantees `exactly_once` and `exactly_once_beta` do not exist.",
)
STORES_OF_SUPPLIERS_FIRST = Difference(
    "stores-of-suppliers-first",
    _versions_since("4.0.0"),
    "KIP-1112",
    "A stream-table join with a grace period, and `transformValues` of a table, are connected to their own "
    "store first, then to other stores. It shows only in the order in which `describe()` lists two stores "
    "whose hash codes share a bucket.",
)
PROCESS_FIX = Difference(
    "process-fix",
    _versions_since("4.0.1", "4.1.1"),
    "KAFKA-19668",
    "With `__enable.process.processValue.fix__`, `process` and `processValues` count as operators that "
    "change the key or the value, which decides where repartition topics are merged.",
)
STREAMS_PROTOCOL = Difference(
    "streams-protocol", _versions_since("4.1.0"), "KIP-1071", "The group protocol `streams` exists."
)
EXPLICIT_NAMING = Difference(
    "explicit-naming",
    _versions_since("4.1.0"),
    "KIP-1111",
    "`ensure.explicit.internal.resource.naming` refuses generated names.",
)
GLOBAL_STORE_NOT_LOGGED = Difference(
    "global-store-not-logged",
    _versions_since("4.1.0"),
    "class Topology",
    "`Topology#addGlobalStore` disables the logging of its store; before 4.1.0 it refuses a store with "
    "logging.",
)
SESSION_WITHOUT_GAP = Difference(
    "session-without-gap",
    _versions_since("4.1.0"),
    "class SessionWindows",
    "The inactivity gap of session windows may be 0.",
)
STORE_ADDED_AGAIN_STAYS_CONNECTED = Difference(
    "store-added-again-stays-connected",
    _versions_since("4.2.2", "4.3.2"),
    "KAFKA-20464",
    "A `StoreBuilder` that is added again stays connected to its processors: they are in one sub-topology, "
    "and its changelog is not dropped.",
)
FIRST_KEY_CHANGE_FOUND = Difference(
    "first-key-change-found",
    _versions_since("4.3.0"),
    "KAFKA-20264",
    "`merge.repartition.topics` finds a key change above any input of a `merge`; before 4.3.0, only above "
    "the last one.",
)
JOIN_STORES_WITH_HEADERS = Difference(
    "join-stores-with-headers",
    _versions_since("4.3.0"),
    "KAFKA-20221",
    "The changelog of a join's store that is passed as a supplier has the cleanup policy `compact,delete`; "
    "before 4.3.0 it is `delete`.",
)
NO_UPGRADE_FROM_2_3 = Difference(
    "no-upgrade-from-2.3",
    _versions_since("4.2.0"),
    "class UpgradeFromValues",
    "`upgrade.from` does not accept releases before 2.4.",
)

COPARTITIONED_WHEN_OPTIMIZED = Difference(
    "copartitioned-when-optimized",
    _versions_since("2.6.1"),
    "KAFKA-10454",
    "With `topology.optimization: all`, the repartition topics of a join of streams are co-partitioned; "
    "before 2.6.1 they are not checked.",
)
TOPIC_READ_TWICE = Difference(
    "topic-read-twice",
    _versions_since("2.8.0"),
    "KAFKA-6687",
    "Several calls may read the same topic; before 2.8.0, the topology cannot be built.",
)
GRACE_DECIDES_RETENTION = Difference(
    "grace-decides-retention",
    _versions_since("3.0.0"),
    "KIP-633",
    "A windowed store whose grace period was set keeps window size plus grace; before 3.0.0, at least a day.",
)
JOIN_CHANGELOGS_DELETED = Difference(
    "join-changelogs-deleted",
    _versions_since("3.1.0"),
    "KAFKA-13345",
    "The changelog of a window store with duplicates, such as the stores of a join of streams, has the "
    "cleanup policy `delete`; before 3.1.0 it is `compact,delete`.",
)
SELF_JOIN_WITH_ONE_STORE = Difference(
    "self-join-with-one-store",
    _versions_since("3.4.0"),
    "KIP-862",
    "With `topology.optimization: all`, a join of a stream with itself has one store, not two.",
)
SLIDING_RETENTION_COMPUTED = Difference(
    "sliding-retention-computed",
    _versions_since("3.7.0"),
    "3.6.2 and 3.7.2 compared",
    "The retention of a supplier for sliding windows is ignored: the window decides the retention of the "
    "changelog.",
)
JOIN_POLICY_OVERRIDDEN = Difference(
    "join-policy-overridden",
    _versions_since("3.7.0"),
    "3.6.2 and 3.7.2 compared",
    "A cleanup policy that `StreamJoined` gives the window stores of a join is ignored: it is `delete`.",
)

OLDER_DIFFERENCES = (
    COPARTITIONED_WHEN_OPTIMIZED,
    TOPIC_READ_TWICE,
    GRACE_DECIDES_RETENTION,
    JOIN_CHANGELOGS_DELETED,
    SELF_JOIN_WITH_ONE_STORE,
    SLIDING_RETENTION_COMPUTED,
    JOIN_POLICY_OVERRIDDEN,
)
"""The differences up to the oldest supported release, from 2.5 on, that comparisons have found.

Documents of such versions have texts or topics, which show most of them.
"""

DIFFERENCES = (
    READ_ONLY_STORES,
    OFFSET_RESETS,
    UNNAMED_GLOBAL_STORE_FAILS,
    NO_OLD_GUARANTEES,
    STORES_OF_SUPPLIERS_FIRST,
    PROCESS_FIX,
    STREAMS_PROTOCOL,
    EXPLICIT_NAMING,
    GLOBAL_STORE_NOT_LOGGED,
    SESSION_WITHOUT_GAP,
    NO_UPGRADE_FROM_2_3,
    STORE_ADDED_AGAIN_STAYS_CONNECTED,
    FIRST_KEY_CHANGE_FOUND,
    JOIN_STORES_WITH_HEADERS,
)
"""All of them, from the oldest to the newest."""

ASYMMETRIC_WINDOWS = Difference(
    "asymmetric-windows",
    _versions_since("3.8.0"),
    "KAFKA-15417",
    "In a left or outer join of streams whose `before` and `after` differ, a record without a partner is "
    "emitted when the window of its own side closes; before 3.8.0, when the window of the next record's side "
    "closed.",
)
FOREIGN_KEY_NULLS = Difference(
    "foreign-key-nulls",
    _versions_since("3.9.1", "4.0.1", "4.1.0"),
    "KAFKA-16394, KAFKA-16407",
    "A foreign-key join processes changes from and to a null foreign key, and emits fewer repeated "
    "deletions.",
)
NULL_GLOBAL_KEYS = Difference(
    "null-global-keys",
    _versions_since("4.0.1"),
    "KAFKA-19208",
    "A left join of a stream with a global table forwards records whose key for the table is null; before "
    "4.0.1, only those whose own key is null, too.",
)
LOGGED_HEADERS = Difference(
    "logged-headers",
    _versions_since("4.3.0"),
    "KIP-1271",
    "Changelog records of the window stores of stream-stream joins, and of the subscriptions of "
    "foreign-key joins, have the headers of the record that caused them.",
)

RESULT_DIFFERENCES = (ASYMMETRIC_WINDOWS, FOREIGN_KEY_NULLS, NULL_GLOBAL_KEYS, LOGGED_HEADERS)
"""Changes of results with the same topology, from the oldest; the runtime has both behaviors."""

PATCHED_CONFIGS: Mapping[str, Difference] = {"__enable.process.processValue.fix__": PROCESS_FIX}
"""Configs that came with a patch. The table of `configs/table.py` has the releases of the others."""


def has_config(key: str, version: KafkaStreamsVersion) -> bool:
    """Return whether `version` has a config of `StreamsConfig`; other configs are in every version."""
    change = PATCHED_CONFIGS.get(key)
    if change is not None:
        return change.is_in(version)
    return key not in config_names(Owner.STREAMS) or find_config(Owner.STREAMS, key, version) is not None


_OLD_OFFSET_RESETS = (None, "earliest", "latest")


def missing_options(steps: Sequence[Step], version: KafkaStreamsVersion) -> Iterator[Problem]:
    """Yield a problem for each call or option that is newer than `version`."""
    if OFFSET_RESETS.is_in(version):
        return
    pending = list(reversed(steps))
    while pending:
        step = pending.pop()
        operator = step.operator
        if isinstance(operator, op.Split):
            branches = (*operator.branches, *((operator.default,) if operator.default else ()))
            pending += [inner for branch in reversed(branches) for inner in reversed(branch.then)]
        if isinstance(operator, processor_api.AddReadOnlyStateStore) and not READ_ONLY_STORES.is_in(version):
            yield _not_in_version(
                "addReadOnlyStateStore",
                READ_ONLY_STORES,
                version,
                "a `table`, or a store with a changelog",
                step.at,
            )
        reset = getattr(operator, "offset_reset", None)
        if reset not in _OLD_OFFSET_RESETS:
            yield _not_in_version(
                f"offsetReset: {reset}", OFFSET_RESETS, version, "`earliest` or `latest`", step.at
            )


def _not_in_version(
    what: str, difference: Difference, version: KafkaStreamsVersion, instead: str, at: Location | None
) -> Problem:
    return Problem(
        code=ProblemCode.NOT_IN_VERSION,
        summary=f"`{what}` exists since Kafka Streams {difference.since_text}.",
        expected=instead,
        found=f"`{what}`, with Kafka Streams {version}",
        why="The application does not compile with its version of Kafka Streams.",
        fix=f"Use {instead}, or set `application.kafkaStreams` to the version that runs.",
        location=at,
    )
