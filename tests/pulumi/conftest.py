from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from tests.pulumi.cluster import Cluster
from tests.pulumi.driver import Stack
from toolchain import PulumiToolchain
from toolchain.broker.local import LocalBroker

SOURCE_PARTITIONS = 4


@attrs.frozen
class World:
    """A stack with one counting application: source -> repartition topic -> store with a changelog."""

    stack: Stack
    cluster: Cluster
    id: str
    source: str

    @property
    def repartition(self) -> str:
        return f"{self.id}-by-customer-repartition"

    @property
    def changelog(self) -> str:
        return f"{self.id}-counts-changelog"

    @property
    def topics(self) -> tuple[str, str]:
        return self.repartition, self.changelog

    def declare(self, config: Mapping[str, str] | None = None, **application: Any) -> None:
        """Write the document; `application` are further keys of its section `application`."""
        document = {
            "application": {"id": self.id, "config": dict(config or {}), **application},
            "topology": [
                {"stream": {"topic": self.source}},
                {"groupBy": {"key": "value.customer", "name": "by-customer"}},
                {"count": {"materialized": "counts"}},
            ],
        }
        self.stack.document(self.id, yaml.safe_dump(document))

    def set_up(self, config: Mapping[str, str] | None = None, **application: Any) -> None:
        """Declare and create."""
        self.declare(config, **application)
        outcome = self.stack.up()
        assert outcome.succeeded, outcome

    def partitions(self) -> tuple[int | None, ...]:
        return tuple(self.cluster.partitions(name) for name in self.topics)

    def is_clean(self) -> None:
        """Assert that Pulumi and the planner see nothing to do."""
        outcome = self.stack.preview("--expect-no-changes")
        assert outcome.succeeded, outcome


@pytest.fixture
def cluster(kafka: LocalBroker) -> Cluster:
    return Cluster(kafka.bootstrap_servers)


@pytest.fixture
def world(
    tmp_path: Path,
    pulumi_toolchain: PulumiToolchain,
    cluster: Cluster,
    unique: Callable[[str], str],
) -> World:
    stack = Stack.create(tmp_path / "stack", pulumi_toolchain, {"bootstrapServers": cluster.bootstrap_servers})
    source = unique("orders")
    cluster.create(source, SOURCE_PARTITIONS)
    return World(stack, cluster, unique("app"), source)
