"""PURE. Find undeclared Kafka Streams applications of a cluster by their topics and groups."""

from infra.planner.adoption.findings import FoundApplication, PassedOver, Recognized
from infra.planner.adoption.recognition import INTERNAL_NAMES, recognize

__all__ = ["INTERNAL_NAMES", "FoundApplication", "PassedOver", "Recognized", "recognize"]
