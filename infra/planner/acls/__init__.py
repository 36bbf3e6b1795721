"""PURE. Who needs which rights on the cluster, and what a run does about the ACLs that grant them.

Belongs here: the least rights of an application (`application`) and of Headwater itself (`headwater`), and
how they become grants and revocations (`decide`).
"""

from infra.planner.acls.action import AclAction, AclActionKind
from infra.planner.acls.application import application_needs, incomplete_needs
from infra.planner.acls.headwater import Purpose, headwater_needs
from infra.planner.acls.needs import Need, acls_of, least

__all__ = [
    "AclAction",
    "AclActionKind",
    "Need",
    "Purpose",
    "acls_of",
    "application_needs",
    "headwater_needs",
    "incomplete_needs",
    "least",
]
