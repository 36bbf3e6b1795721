"""The HTTP endpoint of one client: metrics, health, status and control; also its log.

Contains the server and access control. The agent and the runtime add the content to a `Surface`: a section of
the status, metrics in its registry, and routes for control. Nothing here depends on Kafka.
"""

from headwater.control.access import DEFAULT_ADDRESS, TOKEN_VARIABLE, Access, access_of
from headwater.control.server import ControlServer
from headwater.control.surface import HEALTHY, Health, Refused, Route, Section, Surface

__all__ = [
    "DEFAULT_ADDRESS",
    "HEALTHY",
    "TOKEN_VARIABLE",
    "Access",
    "ControlServer",
    "Health",
    "Refused",
    "Route",
    "Section",
    "Surface",
    "access_of",
]
