"""What an upgrade of Kafka Streams changes for applications: pure, as the rest of the planner."""

from infra.planner.upgrade.changes import ApplicationUpgrade, Change, ChangeKind, State, Upgrade
from infra.planner.upgrade.find import find_upgrade

__all__ = ["ApplicationUpgrade", "Change", "ChangeKind", "State", "Upgrade", "find_upgrade"]
