"""`up` is killed at random times. The next one completes it, and every topic is still the same."""

import logging
import random
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import attrs
import pytest

from tests.pulumi.conftest import SOURCE_PARTITIONS, Deployment
from tests.pulumi.driver import kill

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

_log = logging.getLogger(__name__)
CONFIG = {"partition.autoscaling.enabled": True, "static.partitioner.class": "com.example.ByTenant"}
NEW_STORES = 3
COUNT: tuple[dict[str, object], ...] = (
    {"groupBy": {"from": "orders", "key": "value.customer", "name": "by-customer"}},
    {"count": {"materialized": "counts"}},
    {"toStream": None},
)


@attrs.define
class Series:
    """Documents that change before each `up`, and what the topics must be afterwards.

    Application `first` has stores, `second` has none. One of them manages the sink. `ids` has the id of each
    topic, as it was found first.
    """

    deployment: Deployment
    chance: random.Random
    first: str
    second: str
    stores: int = NEW_STORES
    partitions: int = SOURCE_PARTITIONS
    renames: int = 0
    retired: int = 0
    owner: str = attrs.field(init=False)
    ids: dict[str, str] = attrs.field(factory=dict)
    deleted: set[str] = attrs.field(factory=set)
    """Topics of retired applications, which the next `up` deletes."""
    seconds: float = attrs.field(init=False)
    """The duration of the latest `up` that was not killed."""

    def __attrs_post_init__(self) -> None:
        self.owner = self.first

    @property
    def sink(self) -> str:
        return f"{self.deployment.source}-totals"

    def topics(self) -> set[str]:
        """Return the topics that the documents declare."""
        stores = {f"{self.first}-store-{number}-changelog" for number in range(self.stores)}
        both = (self.first, self.second)
        return {self.sink, *stores, *(name for id_ in both for name in internal_topics(id_))}

    def write(self, former: str | None = None) -> None:
        for id_, stores in ((self.first, self.stores), (self.second, 0)):
            renamed = {"renamedFrom": former} if former is not None and id_ == self.first else {}
            topics = {self.sink: {"partitions": "follow"}} if id_ == self.owner else None
            attrs.evolve(self.deployment, id=id_).write(
                [
                    {"stream": {"topic": self.deployment.source, "as": "orders"}},
                    *(process(number) for number in range(stores)),
                    *COUNT,
                    {"to": {"topic": self.sink}},
                ],
                CONFIG,
                topics=topics,
                application=renamed,
            )

    def add_stores(self) -> None:
        self.stores += NEW_STORES
        self.write()

    def expand_source(self) -> None:
        self.partitions += 1
        self.deployment.cluster.expand(self.deployment.source, self.partitions)

    def move_sink(self) -> None:
        self.owner = self.second if self.owner == self.first else self.first
        self.add_stores()

    def rename(self) -> None:
        former, self.renames = self.first, self.renames + 1
        self.stores = NEW_STORES
        self.first = f"v{self.renames}-{self.deployment.id}"
        self.owner = self.first if self.owner == former else self.owner
        self.deployment.stack.document(former, None)
        self.write(former)

    def retire(self) -> None:
        """Set up another application and take the first step of retiring it: the next `up` deletes it."""
        self.retired += 1
        ending = attrs.evolve(self.deployment, id=f"gone{self.retired}-{self.deployment.id}")
        ending.declare()
        ending.up()
        ending.declare(lifecycle="retired")
        self.complete()
        ending.stack.document(ending.id, None)
        self.deleted = set(ending.topics)

    def up_killed(self) -> bool:
        """Start an `up` and kill it at a random time; return whether it was still running."""
        process = self.deployment.stack.start("up", "--yes", "--skip-preview", "--parallel", "2")
        with suppress(subprocess.TimeoutExpired):
            process.wait(self.chance.uniform(0, self.seconds))
        was_running = process.poll() is None
        kill(process)
        return was_running

    def complete(self) -> None:
        """Run an `up` that must succeed."""
        started = time.monotonic()
        self.deployment.up()
        self.seconds = time.monotonic() - started

    def check_ids(self) -> None:
        """Check that each topic is still the one that was found first, and remember new ones."""
        cluster = self.deployment.cluster
        existing = cluster.existing(sorted(self.topics() | self.ids.keys()))
        assert self.ids.keys() - self.deleted <= existing
        for name, found in cluster.topic_ids(existing - self.deleted).items():
            assert self.ids.setdefault(name, found) == found, name

    def check_complete(self) -> None:
        """Check that cluster and state have what the documents declare, once, and nothing pending is lost."""
        self.check_ids()
        cluster = self.deployment.cluster
        assert cluster.existing(sorted(self.topics())) == self.topics()
        assert not cluster.existing(sorted(self.deleted))
        for name in self.deleted:
            self.ids.pop(name, None)
        self.deleted = set()
        assert {name: cluster.partitions(name) for name in self.topics()} == dict.fromkeys(
            self.topics(), self.partitions
        )
        state = self.deployment.stack.state()
        registered = [r for r in state if r["type"] == "kafka:index/topic:Topic"]
        current = [r for r in registered if name_of(r) in self.topics()]
        assert len(current) == len(self.topics())
        assert all(resource["protect"] for resource in current)
        records = dict(recorded_topics(state))
        assert {name: id_ for names in records.values() for name, id_ in names.items()} == {
            name: self.ids[name] for name in self.topics()
        }
        assert self.sink in records[self.owner]


def recorded_topics(state: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield application id and topic → id for each setup record in the state."""
    for resource in state:
        outputs = resource.get("outputs") or {}
        if resource["type"] == "headwater:kafka:InternalTopics" and "topics" in outputs:
            yield name_of(resource), {name: topic["id"] for name, topic in outputs["topics"].items()}


def name_of(resource: Mapping[str, Any]) -> str:
    return str(resource["urn"]).rpartition("::")[2]


def internal_topics(id_: str) -> tuple[str, str]:
    return f"{id_}-by-customer-repartition", f"{id_}-counts-changelog"


def process(number: int) -> dict[str, object]:
    store = {"name": f"store-{number}", "kind": "keyValue"}
    return {"process": {"from": "orders", "name": f"worker-{number}", "stores": [store]}}


def test_up_completes_after_kills_at_few_random_times(deployment: Deployment) -> None:
    _kill_at_random(deployment, kills=4)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_up_completes_after_kills_at_fifty_random_times(deployment: Deployment) -> None:
    _kill_at_random(deployment, kills=50)


def _kill_at_random(deployment: Deployment, kills: int) -> None:
    """Change the documents, kill `up`, and run it again, until it was killed `kills` times."""
    chance = random.Random(f"{kills} kills")  # noqa: S311 - a repeatable choice, not for security
    series = Series(deployment, chance, deployment.id, f"other-{deployment.id}")
    series.write()
    series.complete()
    series.check_complete()
    changes: list[Callable[[], None]] = []
    killed = 0
    while killed < kills:
        if not changes:
            changes = [series.add_stores, series.expand_source, series.move_sink, series.rename]
            changes += [series.add_stores, series.retire]
            chance.shuffle(changes)
        changes.pop()()
        killed += series.up_killed()
        _log.info("up was killed %d of %d times", killed, kills)
        # No topic was replaced. The next `up` reads the state.
        series.check_ids()
        deployment.stack.succeed("cancel", "--yes")
        series.complete()
        series.check_complete()
    deployment.stack.succeed("refresh", "--yes", "--clear-pending-creates")
    assert not deployment.stack.pending_operations()
    series.check_complete()
    deployment.is_clean()
