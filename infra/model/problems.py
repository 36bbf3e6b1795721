"""Problems are values: what is wrong, where, what was expected and found, why it matters and how to fix it.

Passes return them; only the edges (command line, Pulumi program) turn a non-empty collection into an exit
code.
"""

from collections.abc import Iterable
from enum import Enum, StrEnum

import attrs


class Severity(Enum):
    """How much a problem weighs: an ERROR stops every change, the others are told and nothing more."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class ProblemCode(StrEnum):
    """The closed vocabulary of problems. `docs/problems.md` explains each; a test compares the two."""

    # the document cannot be read or does not fit the schema
    UNREADABLE_DOCUMENT = "UnreadableDocument"
    DOCUMENT_TOO_LARGE = "DocumentTooLarge"
    YAML_SYNTAX = "YamlSyntax"
    SCHEMA_VIOLATION = "SchemaViolation"
    DUPLICATE_APPLICATION = "DuplicateApplication"
    APPLICATION_ID_OVERLAP = "ApplicationIdOverlap"
    UNREADABLE_DESCRIBE = "UnreadableDescribe"
    MISSING_DETAIL = "MissingDetail"

    # the topology is one that Kafka Streams refuses (the text names the exception class it throws)
    INVALID_TOPOLOGY = "InvalidTopology"
    INVALID_NAME = "InvalidName"
    INVALID_CONFIG = "InvalidConfig"
    OPTIMIZATION_FAILS = "OptimizationFails"
    UNNAMED_RESOURCES = "UnnamedResources"

    # partition counts cannot be decided
    MISSING_SOURCE_TOPIC = "MissingSourceTopic"
    UNDECIDABLE_PARTITIONS = "UndecidablePartitions"
    NOT_COPARTITIONED = "NotCopartitioned"
    CONFLICTING_PARTITIONS = "ConflictingPartitions"
    FOLLOW_CYCLE = "FollowCycle"

    # the plan
    INTERNAL_TOPICS_ALREADY_SETUP = "InternalTopicsAlreadySetup"
    MISSING_INTERNAL_TOPICS = "MissingInternalTopics"
    MISCONFIGURED_INTERNAL_TOPIC = "MisconfiguredInternalTopic"
    SOURCE_TOPICS_EXPANDED = "SourceTopicsExpanded"
    OVER_PARTITIONED = "OverPartitionedInternalTopic"
    UNSAFE_EXPANSION = "UnsafeExpansion"
    APPLICATION_REMOVED = "ApplicationRemoved"
    GROUP_ACTIVE = "GroupActive"
    WRONG_CLUSTER = "WrongCluster"
    BLAST_RADIUS = "BlastRadius"
    POLICY_VIOLATED = "PolicyViolated"
    REPLICATION_FACTOR = "ReplicationFactor"
    TIMEOUT = "Timeout"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    AUTHENTICATION_REFUSED = "AuthenticationRefused"
    NOT_AUTHORIZED = "NotAuthorized"
    NO_AUTHORIZER = "NoAuthorizer"
    ACLS_INCOMPLETE = "AclsIncomplete"

    # the document plans but cannot run
    NOT_RUNNABLE = "NotRunnable"
    UNSUPPORTED_EXPRESSION = "UnsupportedExpression"
    UNSUPPORTED_FORMAT = "UnsupportedFormat"
    QUERY_FAILED = "QueryFailed"

    # lints: what Kafka Streams would silently do wrong
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
    """Where in a document: `line` and `column` count from 1, `pointer` is an RFC 6901 JSON pointer."""

    file: str
    line: int = 0
    column: int = 0
    pointer: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@attrs.frozen(kw_only=True)
class Problem:
    """One thing that is wrong, complete enough to be acted on without reading the source.

    `summary` is one sentence. `expected` and `found` are short phrases that fit a table cell. `why` says
    what happens if it is left as it is, `fix` what to do, in the imperative.
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


class ProblemsError(Exception):
    """Raised once, at the edge, with everything that was collected."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"{len(self.problems)} problem(s): " + "; ".join(p.summary for p in self.problems))


def errors(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Those that stop every change."""
    return tuple(problem for problem in problems if problem.severity is Severity.ERROR)
