"""PURE. Applications that run on a cluster without having been declared, recognised by topics and groups."""

from infra.planner.adoption.findings import FoundApplication, PassedOver, Recognised
from infra.planner.adoption.recognition import INTERNAL_NAMES, recognise

__all__ = ["INTERNAL_NAMES", "FoundApplication", "PassedOver", "Recognised", "recognise"]
