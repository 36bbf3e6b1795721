"""Access control lists: permissions on cluster resources, and what a document declares about them."""

import shlex
from enum import StrEnum

import attrs

from headwater.model.problems import Location


class ResourceKind(StrEnum):
    """The resource type of a permission, as Pulumi's Kafka provider spells it."""

    TOPIC = "Topic"
    GROUP = "Group"
    TRANSACTIONAL_ID = "TransactionalID"
    CLUSTER = "Cluster"


class Pattern(StrEnum):
    """The pattern type: one resource name, or all names with a prefix."""

    LITERAL = "Literal"
    PREFIXED = "Prefixed"


class Operation(StrEnum):
    """The permitted operation. Some operations imply others (`implied`)."""

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
        """Return the operation that this one includes (`StandardAuthorizerData#checkSection`)."""
        return _IMPLIED.get(self)


_IMPLIED = {
    Operation.READ: Operation.DESCRIBE,
    Operation.WRITE: Operation.DESCRIBE,
    Operation.DELETE: Operation.DESCRIBE,
    Operation.ALTER: Operation.DESCRIBE,
    Operation.ALTER_CONFIGS: Operation.DESCRIBE_CONFIGS,
}
RESOURCE_OPTIONS = {
    ResourceKind.TOPIC: "--topic",
    ResourceKind.GROUP: "--group",
    ResourceKind.TRANSACTIONAL_ID: "--transactional-id",
    ResourceKind.CLUSTER: "--cluster",
}
"""Resource type → the option of `kafka-acls.sh` that names a resource."""
CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of kind CLUSTER."""
ANY_NAME = "*"
"""As a literal name: all resources of the kind. As a host: all hosts."""


@attrs.frozen
class Permission:
    """The permission to perform `operation` on the resources with this name or prefix."""

    kind: ResourceKind
    name: str
    operation: Operation
    pattern: Pattern = Pattern.LITERAL

    def covers(self, other: "Permission") -> bool:
        if self.kind is not other.kind or other.operation not in {self.operation, self.operation.implied}:
            return False
        if self.pattern is Pattern.PREFIXED:
            return other.name.startswith(self.name)
        return self.name == ANY_NAME or (self.name == other.name and other.pattern is Pattern.LITERAL)

    @property
    def text(self) -> str:
        """Return the permission as text, such as `Read Topic orders`; a prefix ends with a star."""
        star = "*" if self.pattern is Pattern.PREFIXED else ""
        return f"{self.operation} {self.kind} {self.name}{star}"

    @property
    def command(self) -> str:
        """Return the command of Kafka that grants it, with words for the broker and the user."""
        name = "" if self.kind is ResourceKind.CLUSTER else f" {shlex.quote(self.name)}"
        prefixed = " --resource-pattern-type prefixed" if self.pattern is Pattern.PREFIXED else ""
        return (
            "kafka-acls.sh --bootstrap-server BROKER --add --allow-principal User:NAME "
            f"--operation {self.operation} {RESOURCE_OPTIONS[self.kind]}{name}{prefixed}"
        )


@attrs.frozen
class Acl:
    """An ACL: a principal (`User:orders`) has a permission from `host` (an address, or `*` for all)."""

    principal: str
    host: str
    permission: Permission

    @property
    def text(self) -> str:
        """Return a unique text of the ACL, such as `User:orders Read Topic orders`."""
        host = "" if self.host == ANY_NAME else f" from {self.host}"
        return f"{self.principal} {self.permission.text}{host}"


class InternalTopicAcls(StrEnum):
    """Whether ACLs of internal topics name each topic or their common prefix."""

    LITERAL = "literal"
    PREFIXED = "prefixed"


@attrs.frozen
class AclDeclaration:
    """The ACL section of a document.

    `reads` and `writes` are additional topics that the application reads and writes and that the topology
    does not show, such as topics of a `TopicNameExtractor`. A star at the end makes a name a prefix.
    """

    principals: tuple[str, ...]
    at: Location
    hosts: tuple[str, ...] = (ANY_NAME,)
    internal_topics: InternalTopicAcls = InternalTopicAcls.LITERAL
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@attrs.frozen
class LiveAcls:
    """The ACLs read from the cluster; a cluster without an authorizer has none."""

    allowed: frozenset[Acl] = frozenset()
    has_authorizer: bool = True
    unlimited: frozenset[Acl] = frozenset()
    """What ACLs for all operations (`All`) allow. Headwater neither grants nor revokes such ACLs."""
