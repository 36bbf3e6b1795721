"""A stack with an application of its own, on the shared broker or on one of its own."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs
import pytest
import yaml

from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from tests.pulumi.cluster import Cluster
from tests.pulumi.driver import Outcome, Stack
from tests.pulumi.finished_stacks import FinishedStacks

SOURCE_PARTITIONS = 4
_SETTLING_SECONDS = 60


@attrs.frozen
class Deployment:
    """A Pulumi stack with one counting application: source -> repartition topic -> store with a changelog."""

    stack: Stack
    cluster: Cluster
    id: str
    source: str
    finished: FinishedStacks | None = None
    """Has what the first `up` leaves; None: `set_up` runs `up`."""

    @property
    def repartition(self) -> str:
        return f"{self.id}-by-customer-repartition"

    @property
    def changelog(self) -> str:
        return f"{self.id}-counts-changelog"

    @property
    def topics(self) -> tuple[str, str]:
        return self.repartition, self.changelog

    def with_environment(self, **variables: str) -> "Deployment":
        """Return the same deployment with these environment variables for the CLI."""
        return attrs.evolve(self, stack=attrs.evolve(self.stack, environment=variables))

    def declare(self, config: Mapping[str, object] | None = None, **application: object) -> None:
        """Write the document; `application` are further keys of its section `application`."""
        self.write(
            [
                {"stream": {"topic": self.source}},
                {"groupBy": {"key": "value.customer", "name": "by-customer"}},
                {"count": {"materialized": "counts"}},
            ],
            config,
            application=application,
        )

    def write(
        self,
        topology: list[dict[str, object]],
        config: Mapping[str, object] | None = None,
        *,
        topics: Mapping[str, object] | None = None,
        application: Mapping[str, object] | None = None,
        leftovers: Mapping[str, object] | None = None,
    ) -> str:
        """Write a document; return its text."""
        document: dict[str, object] = {
            "application": {"id": self.id, "config": dict(config or {}), **(application or {})},
            "topology": topology,
            **({"topics": topics} if topics else {}),
            **({"leftovers": leftovers} if leftovers else {}),
        }
        text = yaml.safe_dump(document)
        self.stack.document(self.id, text)
        return text

    def set_up(self, config: Mapping[str, object] | None = None, **application: object) -> None:
        """Write the document, and give the new stack what the first `up` leaves, if possible by a copy."""
        self.declare(config, **application)
        if self.finished is None:
            self.up()
        else:
            self.finished.set_up(self)

    def up(self, *flags: str, with_preview: bool = False) -> Outcome:
        """Run an `up` that must succeed."""
        outcome = self.stack.up(*flags, with_preview=with_preview)
        assert outcome.succeeded, str(outcome)
        return outcome

    def refused(self, *codes: str, flags: tuple[str, ...] = ()) -> Outcome:
        """Run an `up` that must report all these problems and change nothing."""
        before = self.facts()
        outcome = self.stack.up(*flags)
        assert not outcome.succeeded, str(outcome)
        for code in codes:
            assert f"error[{code}]" in outcome.text, str(outcome)
        assert "nothing was changed" in outcome.text, str(outcome)
        assert self.facts() == before
        return outcome

    def facts(self) -> dict[str, object]:
        """Return ids, partition counts and settings of the topics, which a run could have changed."""
        names = sorted(self.cluster.existing(self.topics))
        return {
            name: (self.cluster.topic_id(name), self.cluster.partitions(name), self.cluster.config(name))
            for name in names
        }

    def partitions(self) -> tuple[int | None, ...]:
        return tuple(self.cluster.partitions(name) for name in self.topics)

    def settles_at(self, *partitions: int | None) -> None:
        """Wait for these counts: a broker sees a change shortly after the controller."""
        until(lambda: self.partitions() == partitions, _SETTLING_SECONDS)
        assert self.partitions() == partitions

    def is_clean(self, *flags: str) -> None:
        """Assert that neither Pulumi nor the planner finds changes."""
        outcome = self.stack.preview("--expect-no-changes", "--diff", *flags)
        assert outcome.succeeded, str(outcome)


@pytest.fixture
def cluster(kafka: LocalBroker) -> Cluster:
    return Cluster(kafka.bootstrap_servers)


@pytest.fixture(scope="session")
def finished_stacks(tmp_path_factory: pytest.TempPathFactory) -> FinishedStacks:
    """What the first `up` leaves; all workers of the run share it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "finished-stacks"
    folder.mkdir(exist_ok=True)
    return FinishedStacks(folder)


@pytest.fixture
def deployment(
    tmp_path: Path,
    pulumi_toolchain: PulumiToolchain,
    cluster: Cluster,
    unique: Callable[[str], str],
    finished_stacks: FinishedStacks,
) -> Deployment:
    return make_deployment(tmp_path / "stack", pulumi_toolchain, cluster, unique, finished=finished_stacks)


@pytest.fixture
def broker(own_broker: Callable[[], Broker]) -> Iterator[Broker]:
    """A broker of its own, which the test may kill."""
    with own_broker() as broker:
        yield broker


def make_deployment(
    folder: Path,
    toolchain: PulumiToolchain,
    cluster: Cluster,
    unique: Callable[[str], str],
    *,
    has_passphrase: bool = False,
    finished: FinishedStacks | None = None,
) -> Deployment:
    settings = {"bootstrapServers": cluster.bootstrap_servers}
    stack = Stack.create(folder, toolchain, settings, is_preloaded=True, has_passphrase=has_passphrase)
    source = unique("orders")
    cluster.create(source, SOURCE_PARTITIONS)
    return Deployment(stack, cluster, unique("app"), source, finished)
