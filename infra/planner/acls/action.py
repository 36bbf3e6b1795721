"""What is to be done with one ACL."""

from enum import Enum

import attrs

from infra.model.acls import Acl


class AclActionKind(Enum):
    """GRANT makes an ACL, RESTORE makes one again that the stack holds and the cluster has lost.

    ADOPT takes over one that exists, KEEP changes nothing, REVOKE removes it. RELEASE lets go: it stays.
    """

    GRANT = "grant"
    RESTORE = "restore"
    ADOPT = "adopt"
    KEEP = "keep"
    REVOKE = "revoke"
    RELEASE = "release"


@attrs.frozen
class AclAction:
    """One ACL's part of a plan; `reason` says what it is needed for, empty when nobody needs it."""

    kind: AclActionKind
    acl: Acl
    reason: str = ""

    @property
    def is_change(self) -> bool:
        """Whether this does anything at all."""
        return self.kind is not AclActionKind.KEEP
