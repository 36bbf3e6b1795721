"""PURE. Find undeclared Kafka Streams applications of a cluster by their topics and groups."""

from infra.planner.adoption.findings import FoundApplication, Recognized, SkippedTopic, SkipReason
from infra.planner.adoption.recognition import recognize
from infra.planner.evidence.names import INTERNAL_NAMES

__all__ = ["INTERNAL_NAMES", "FoundApplication", "Recognized", "SkipReason", "SkippedTopic", "recognize"]
