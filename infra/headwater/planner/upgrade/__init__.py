"""PURE. What an upgrade of Kafka Streams changes for applications."""

from headwater.planner.upgrade.changes import ApplicationUpgrade, Change, ChangeKind, DataNote, State, Upgrade
from headwater.planner.upgrade.find import (
    compare_versions,
    compile_recorded,
    find_upgrade,
    with_recorded_versions,
)

__all__ = [
    "ApplicationUpgrade",
    "Change",
    "ChangeKind",
    "DataNote",
    "State",
    "Upgrade",
    "compare_versions",
    "compile_recorded",
    "find_upgrade",
    "with_recorded_versions",
]
