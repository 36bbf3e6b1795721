"""PURE. Which ACLs an application and Headwater itself need, and what a run does about them.

Belongs here: the least privileges of an application (`application`) and of Headwater (`headwater`), and the
grants and revocations of a run (`decide`).
"""

from headwater.planner.acls.application import Need, acls_of, application_needs, incomplete_needs, least_needs
from headwater.planner.acls.headwater import Purpose, headwater_needs

__all__ = [
    "Need",
    "Purpose",
    "acls_of",
    "application_needs",
    "headwater_needs",
    "incomplete_needs",
    "least_needs",
]
