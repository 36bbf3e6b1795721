"""Problems as values: what is wrong, where, what was expected and found, the consequence and the fix.

Compiler and planner return them; only the command line and the Pulumi program turn them into an exit code.
"""

from collections.abc import Iterable, Sequence
from enum import Enum, StrEnum
from typing import Self

import attrs

_LONGEST_QUOTE = 60


class Severity(Enum):
    """The severity of a problem: an ERROR prevents every change, the others are only reported."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class ProblemCode(StrEnum):
    """All problem codes. `docs/problems.md` explains each; a test compares the two."""

    # the document cannot be read or does not fit the schema
    UNREADABLE_DOCUMENT = "UnreadableDocument"
    DOCUMENT_TOO_LARGE = "DocumentTooLarge"
    YAML_SYNTAX = "YamlSyntax"
    SCHEMA_VIOLATION = "SchemaViolation"
    DUPLICATE_APPLICATION = "DuplicateApplication"
    APPLICATION_ID_OVERLAP = "ApplicationIdOverlap"
    UNREADABLE_DESCRIBE = "UnreadableDescribe"
    MISSING_DETAIL = "MissingDetail"
    DIFFERS_FROM_CLUSTER = "DiffersFromCluster"
    TOPOLOGY_NOT_EXPORTED = "TopologyNotExported"
    TOPOLOGY_NOT_KNOWN = "TopologyNotKnown"
    UNSUPPORTED_VERSION = "UnsupportedVersion"
    NOT_IN_VERSION = "NotInVersion"
    PROJECT_NOT_CREATED = "ProjectNotCreated"

    # Kafka Streams rejects the topology (the text names the exception class)
    INVALID_TOPOLOGY = "InvalidTopology"
    INVALID_NAME = "InvalidName"
    INVALID_CONFIG = "InvalidConfig"
    OPTIMIZATION_FAILS = "OptimizationFails"
    UNNAMED_RESOURCES = "UnnamedResources"
    INVALID_PROCESSORS = "InvalidProcessors"

    # partition counts cannot be decided
    MISSING_SOURCE_TOPIC = "MissingSourceTopic"
    UNDECIDABLE_PARTITIONS = "UndecidablePartitions"
    NOT_COPARTITIONED = "NotCopartitioned"
    CONFLICTING_PARTITIONS = "ConflictingPartitions"
    FOLLOW_CYCLE = "FollowCycle"

    # the plan
    MISSING_SINK_TOPIC = "MissingSinkTopic"
    INTERNAL_TOPICS_ALREADY_SETUP = "InternalTopicsAlreadySetup"
    MISSING_INTERNAL_TOPICS = "MissingInternalTopics"
    MISCONFIGURED_INTERNAL_TOPIC = "MisconfiguredInternalTopic"
    SOURCE_TOPICS_EXPANDED = "SourceTopicsExpanded"
    EXPLICIT_COUNT_CHANGED = "ExplicitCountChanged"
    OVER_PARTITIONED = "OverPartitionedInternalTopic"
    UNDER_PARTITIONED = "UnderPartitionedInternalTopic"
    UNSAFE_EXPANSION = "UnsafeExpansion"
    STATIC_PARTITIONING_INCOMPLETE = "StaticPartitioningIncomplete"
    PROCESSOR_COUNT = "ProcessorCount"
    STATE_NOT_MOVABLE = "StateNotMovable"
    EXPANSION_WAITS = "ExpansionWaits"
    MOVE_INCOMPLETE = "MoveIncomplete"
    RESHARD_REFUSED = "ReshardRefused"
    RESHARD_INCOMPLETE = "ReshardIncomplete"
    UNPROCESSED_RECORDS = "UnprocessedRecords"
    MISPLACED_ENTRIES = "MisplacedEntries"
    APPLICATION_REMOVED = "ApplicationRemoved"
    KAFKA_STREAMS_CHANGED = "KafkaStreamsChanged"
    TOPIC_REPLACED = "TopicReplaced"
    OWNER_NOT_PROVEN = "OwnerNotProven"
    SETTING_REMOVES_DATA = "SettingRemovesData"
    DELETION_REFUSED = "DeletionRefused"
    MANAGED_BY_ANOTHER_STACK = "ManagedByAnotherStack"
    UNREADABLE_RECORD = "UnreadableRecord"
    RECORDS_NOT_SAFE = "RecordsNotSafe"
    GROUP_PROTOCOL_MISSING = "GroupProtocolMissing"
    GROUP_ACTIVE = "GroupActive"
    PLAN_NOT_APPROVED = "PlanNotApproved"
    WRONG_CLUSTER = "WrongCluster"
    BLAST_RADIUS = "BlastRadius"
    POLICY_VIOLATED = "PolicyViolated"
    REPLICATION_FACTOR = "ReplicationFactor"
    UNAVAILABLE_PARTITIONS = "UnavailablePartitions"
    TIMEOUT = "Timeout"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    REQUEST_NOT_ANSWERED = "RequestNotAnswered"
    AUTHENTICATION_REFUSED = "AuthenticationRefused"
    NOT_AUTHORIZED = "NotAuthorized"
    REFUSED_BY_BROKERS = "RefusedByBrokers"
    NOT_ON_CLUSTER = "NotOnCluster"
    JOURNAL_NOT_FOUND = "JournalNotFound"
    NO_AUTHORIZER = "NoAuthorizer"
    ACLS_INCOMPLETE = "AclsIncomplete"
    EXCESS_PERMISSIONS = "ExcessPermissions"

    # the document plans but cannot run
    NOT_RUNNABLE = "NotRunnable"
    UNSUPPORTED_EXPRESSION = "UnsupportedExpression"
    UNSUPPORTED_FORMAT = "UnsupportedFormat"
    QUERY_FAILED = "QueryFailed"
    SPARK_ENDED = "SparkEnded"
    NOT_STOPPED = "NotStopped"

    # lints: Kafka Streams accepts it silently
    UNCHECKED_COPARTITIONING = "UncheckedCopartitioning"
    PARTITIONS_DEPEND_ON_APPLICATION_ID = "PartitionsDependOnApplicationId"
    COPARTITION_GROUP_LOST_MEMBER = "CopartitionGroupLostMember"
    COGROUP_COPARTITIONS_SOURCES = "CogroupCopartitionsSources"
    RENUMBERING_HAZARD = "RenumberingHazard"
    RENUMBERED = "Renumbered"
    SUPPLIER_RETENTION_IGNORED = "SupplierRetentionIgnored"
    LOGGING_IGNORED = "LoggingIgnored"
    NULL_KEYS_DROPPED = "NullKeysDropped"
    CONFIG_HAS_NO_EFFECT = "ConfigHasNoEffect"
    UNUSED_STORE = "UnusedStore"


@attrs.frozen
class Location:
    """A location in a document; `line` and `column` start at 1, `pointer` is a JSON pointer (RFC 6901)."""

    file: str
    line: int = 0
    column: int = 0
    pointer: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@attrs.frozen(kw_only=True)
class Problem:
    """One problem, with all that a user needs to fix it.

    `summary` is one sentence. `expected` and `found` are short phrases that fit a table cell. `why` says what
    happens without a fix. `fix` says what to do, in the imperative.
    """

    code: ProblemCode
    summary: str
    application: str | None = None
    topic: str | None = None
    node: str | None = None
    expected: str | None = None
    found: str | None = None
    why: str = ""
    fix: str = ""
    location: Location | None = None
    severity: Severity = Severity.ERROR

    def located(
        self, *, application: str | None = None, node: str | None = None, location: Location | None = None
    ) -> "Problem":
        """Return the problem with this application, node and location where it has none of its own.

        Code that finds a problem deep in a topology does not know them. Nothing else of a problem changes
        after it was created: a rule gets the `Caller` that its texts depend on.
        """
        return attrs.evolve(
            self,
            application=self.application or application,
            node=self.node or node,
            location=self.location or location,
        )


def shorten_text(text: str) -> str:
    """Return at most 60 characters on one line, as texts of problems quote what they found."""
    line = "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text[:_LONGEST_QUOTE]
    )
    is_short = len(text) <= _LONGEST_QUOTE and len(line) <= _LONGEST_QUOTE
    return line if is_short else line[: _LONGEST_QUOTE - 1] + "…"


def first_names(names: Sequence[str], most: int) -> str:
    """Return the first names in their order, separated by commas, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


class ProblemsError(Exception):
    """Raised once, by the command line or the Pulumi program, with all collected problems.

    Its text is for users of the Python interface: what is wrong, and how to fix it.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{each.code}: {each.summary} {each.fix}" for each in self.problems))

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[Problem, ...]]]:
        """Return how pickle creates the error again: by default, from its text."""
        return type(self), (self.problems,)

    @property
    def is_temporary(self) -> bool:
        """Return whether a restart of the process may help: no document or setting is wrong."""
        return any(problem.code is ProblemCode.SPARK_ENDED for problem in self.problems)


def errors(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems with severity ERROR."""
    return tuple(problem for problem in problems if problem.severity is Severity.ERROR)


@attrs.frozen(kw_only=True)
class Caller:
    """What a program that compiles or plans knows, and what its user does next."""

    reads_cluster: bool = True
    """Whether partition counts are read from a cluster. If not, a topic without a count may exist."""
    compares_topics: bool = True
    """Whether existing internal topics are compared with what the application needs."""
    knows_setup: bool = True
    """Whether a setup record says which topics Headwater set up. If not, all that exist count as ours."""
    is_running: bool = False
    """Whether this is the application itself: what happens to a topic now happens while it is in use."""
    reconciler: str = "`pulumi up`"
    """Who re-creates and reconfigures topics, to begin a sentence with."""
    describe_hint: str = ""
    """What else to do about a topic that is not found: it may be there, without permission to describe it."""


PLAN = Caller(describe_hint=" If it exists, grant the user permission to describe it.")
"""`pulumi up`, `pulumi preview` and `headwater plan`."""

COMPILE = attrs.evolve(PLAN, compares_topics=False)
"""`headwater compile` with a cluster, of which it reads the counts of source topics."""

OFFLINE = Caller(reads_cluster=False, compares_topics=False)
"""`headwater compile` without a cluster."""

DRIFT_WITHOUT_RECORD = Caller(knows_setup=False)
"""`headwater drift` without a stack: no setup record is known."""

AGENT = Caller(
    knows_setup=False,
    describe_hint=" If it exists, grant the agent's user permission to describe it.",
)
"""The agent: it adds partitions and creates no topics. It reads no setup record."""

APPLICATION = Caller(knows_setup=False, is_running=True, reconciler="The application")
"""`headwater run`: the application checks its own topics, when it starts and while it runs."""
