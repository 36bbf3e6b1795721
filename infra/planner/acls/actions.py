"""The part of an ACL in a plan."""

from enum import Enum

import attrs

from infra.model.acls import Acl


class AclActionKind(Enum):
    """What happens to an ACL.

    GRANT creates it. RESTORE creates it again: the stack has it, the cluster lost it. ADOPT puts an existing
    ACL under the stack's management. KEEP changes nothing. REVOKE deletes it. RELEASE ends its management and
    leaves it on the cluster.
    """

    GRANT = "grant"
    RESTORE = "restore"
    ADOPT = "adopt"
    KEEP = "keep"
    REVOKE = "revoke"
    RELEASE = "release"


@attrs.frozen
class AclAction:
    """One ACL's part of a plan. `reason` says what needs it; empty if nothing does."""

    kind: AclActionKind
    acl: Acl
    reason: str = ""

    @property
    def is_change(self) -> bool:
        """Whether the cluster or the stack differs afterwards."""
        return self.kind is not AclActionKind.KEEP
