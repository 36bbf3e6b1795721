"""Applications that are compared between two versions of Kafka Streams."""

import attrs

from headwater.model.cluster import ClusterSnapshot, LiveGroup, LiveTopic
from headwater.model.versions import SUPPORTED
from headwater.planner.upgrade import ApplicationUpgrade
from tests.compiler.applications import document
from tests.upgrade.upgrade_cases import (
    upgrade,
)

TO = SUPPORTED[-1]
COUNT = document("topology: [{stream: orders}, {groupByKey: {}}, {count: {materialized: s}}]")
COUNT = attrs.evolve(COUNT, application=attrs.evolve(COUNT.application, names_version=True))


def only(*texts: str, to: str = "4.3", snapshot: ClusterSnapshot | None = None) -> ApplicationUpgrade:
    (found,) = upgrade(*texts, to=to, snapshot=snapshot).applications
    return found


def kinds(found: ApplicationUpgrade) -> list[str]:
    return [change.kind.value for change in found.changes]


def cluster(*topics: str) -> ClusterSnapshot:
    return ClusterSnapshot(
        "a-cluster",
        1,
        {name: LiveTopic(name, "", 3, 1) for name in topics},
        {"merged": LiveGroup("merged", "Stable", 2)},
    )
