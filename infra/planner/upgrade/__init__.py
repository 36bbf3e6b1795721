"""PURE. What an upgrade of Kafka Streams changes for applications."""

from infra.planner.upgrade.changes import ApplicationUpgrade, Change, ChangeKind, State, Upgrade
from infra.planner.upgrade.find import compare_versions, find_upgrade
from infra.planner.upgrade.recorded import compile_recorded, with_recorded_versions

__all__ = [
    "ApplicationUpgrade",
    "Change",
    "ChangeKind",
    "State",
    "Upgrade",
    "compare_versions",
    "compile_recorded",
    "find_upgrade",
    "with_recorded_versions",
]
