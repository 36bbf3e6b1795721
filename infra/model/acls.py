"""Access control: who may do what to which resource of the cluster, and what a document declares of it."""

from enum import StrEnum

import attrs

from infra.model.problems import Location


class ResourceKind(StrEnum):
    """What a right is about. The words are those of Pulumi's Kafka provider."""

    TOPIC = "Topic"
    GROUP = "Group"
    TRANSACTIONAL_ID = "TransactionalID"
    CLUSTER = "Cluster"


class Pattern(StrEnum):
    """Whether a right holds for one name, or for all that begin with it."""

    LITERAL = "Literal"
    PREFIXED = "Prefixed"


class Operation(StrEnum):
    """What may be done. Some imply others (`implied`)."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DELETE = "Delete"
    ALTER = "Alter"
    DESCRIBE = "Describe"
    ALTER_CONFIGS = "AlterConfigs"
    DESCRIBE_CONFIGS = "DescribeConfigs"

    @property
    def implied(self) -> "Operation | None":
        """What Kafka's authorizer allows along with it (`StandardAuthorizerData#checkSection`)."""
        return _IMPLIED.get(self)


_IMPLIED = {
    Operation.READ: Operation.DESCRIBE,
    Operation.WRITE: Operation.DESCRIBE,
    Operation.DELETE: Operation.DESCRIBE,
    Operation.ALTER: Operation.DESCRIBE,
    Operation.ALTER_CONFIGS: Operation.DESCRIBE_CONFIGS,
}
CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of kind CLUSTER."""
ANY_NAME = "*"
"""As a literal name it stands for every resource of the kind, as a host for every host."""


@attrs.frozen
class Right:
    """To do `operation` to what is named."""

    kind: ResourceKind
    name: str
    operation: Operation
    pattern: Pattern = Pattern.LITERAL

    def covers(self, other: "Right") -> bool:
        """Whether who has this right needs no `other`."""
        if self.kind is not other.kind or other.operation not in {self.operation, self.operation.implied}:
            return False
        if self.pattern is Pattern.PREFIXED:
            return other.name.startswith(self.name)
        return self.name == ANY_NAME or (self.name == other.name and other.pattern is Pattern.LITERAL)

    @property
    def text(self) -> str:
        """Such as `Read Topic orders`; a star ends what names begin with."""
        star = "*" if self.pattern is Pattern.PREFIXED else ""
        return f"{self.operation} {self.kind} {self.name}{star}"


@attrs.frozen
class Acl:
    """Allows a right to a principal (`User:orders`) that connects from `host` (an address, or any: `*`)."""

    principal: str
    host: str
    right: Right

    @property
    def text(self) -> str:
        """What tells it from all others, such as `User:orders Read Topic orders`."""
        place = "" if self.host == ANY_NAME else f" from {self.host}"
        return f"{self.principal} {self.right.text}{place}"


class InternalTopicAcls(StrEnum):
    """Whether internal topics are named one by one, or by the beginning that they share."""

    LITERAL = "literal"
    PREFIXED = "prefixed"


@attrs.frozen
class AclDeclaration:
    """What a document says about its application's rights.

    `reads` and `writes` are further topics that it reads and writes, a star at the end standing for all names
    that begin so: what the topology does not tell, such as the topics that an extractor chooses.
    """

    principals: tuple[str, ...]
    at: Location
    hosts: tuple[str, ...] = (ANY_NAME,)
    internal_topics: InternalTopicAcls = InternalTopicAcls.LITERAL
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@attrs.frozen
class LiveAcls:
    """The ACLs of the cluster that were asked for; without an authorizer there are none to have."""

    allowed: frozenset[Acl] = frozenset()
    has_authorizer: bool = True
