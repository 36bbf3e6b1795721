"""PURE. Find undeclared Kafka Streams applications of a cluster by their topics and groups."""

from headwater.planner.adoption.findings import FoundApplication, Recognized, SkippedTopic, SkipReason
from headwater.planner.adoption.recognition import recognize
from headwater.planner.evidence.names import INTERNAL_NAMES

__all__ = ["INTERNAL_NAMES", "FoundApplication", "Recognized", "SkipReason", "SkippedTopic", "recognize"]
