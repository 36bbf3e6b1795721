"""The HTTP endpoint of one client: metrics, health, status and control.

Belongs here: how it is served and who may ask. What it tells comes from the parts of the client (the agent,
the runtime), which add themselves to a `Surface`: a section of the status, metrics in its registry, routes
for what may be controlled. Nothing here knows Kafka.
"""

from spark_jobs.control.access import DEFAULT_ADDRESS, TOKEN_VARIABLE, Access, access_of
from spark_jobs.control.server import ControlServer, check_free
from spark_jobs.control.surface import FINE, Health, Refused, Route, Section, Surface

__all__ = [
    "DEFAULT_ADDRESS",
    "FINE",
    "TOKEN_VARIABLE",
    "Access",
    "ControlServer",
    "Health",
    "Refused",
    "Route",
    "Section",
    "Surface",
    "access_of",
    "check_free",
]
