"""`headwater reshard` and `headwater state copy` on a real broker: killed at each step, and as commands."""

import json
import signal
from collections import defaultdict
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, TopicPartition

from headwater.cli.main import main
from headwater.kafka import Connection
from headwater.model.offset_metadata import decode_time, encode_processor_metadata
from headwater.model.problems import ProblemsError
from headwater.spec import load_text
from headwater.toolchain.broker.local import LocalBroker
from headwater_spark.driver.processor_move.entry_copy import unreported
from headwater_spark.driver.reshard import start
from headwater_spark.driver.reshard.start import ReshardOptions, reshard_application
from headwater_spark.engine.partitioners.murmur2 import default_partition
from tests.runtime.driver.dying_cluster import die_after
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]

_TIME = 1_760_000_000_000
_KEYS = [b"key %d" % each for each in range(40)]


@attrs.frozen
class _StoppedApplication:
    """An application with two partitions that was stopped: entries, unprocessed records, and offsets."""

    servers: str
    topics: Topics
    id: str

    @property
    def source(self) -> str:
        return f"{self.id}-orders"

    @property
    def internal(self) -> Mapping[str, str]:
        return {
            name: f"{self.id}-{name}"
            for name in ("kept-changelog", "totals-changelog", "by-value-repartition")
        }

    def text(self, totals: str = "totals") -> str:
        steps = [
            {"stream": {"topic": self.source, "as": "orders"}},
            {"groupByKey": {"from": "orders"}},
            {"count": {"materialized": "kept"}},
            {"groupBy": {"from": "orders", "key": "value", "name": "by-value"}},
            {"count": {"materialized": totals}},
        ]
        return json.dumps({"application": {"id": self.id}, "topology": steps})

    def create(self) -> None:
        """Create the topics, write entries of 40 keys, and records of which half are processed."""
        self.topics.create({self.source: 2})
        self.topics.create(dict.fromkeys(self.internal.values(), 2), {"cleanup.policy": "compact"})
        self.topics.configure(self.internal["by-value-repartition"], {"cleanup.policy": "delete"})
        for store in ("kept", "totals"):
            topic = self.internal[f"{store}-changelog"]
            self.topics.put_by_key(topic, [(key, b"old", _TIME) for key in _KEYS])
            self.topics.put_by_key(topic, [(key, key + b" of " + store.encode(), _TIME + 1) for key in _KEYS])
            self.topics.send((topic, default_partition(key, 2), key, None, _TIME, ()) for key in _KEYS[::7])
        records = [(key, b"%d" % number, _TIME + number) for number in range(3) for key in _KEYS]
        self.topics.put_by_key(self.internal["by-value-repartition"], records)
        self.topics.put_by_key(self.source, records)
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": self.id})
        offsets = []
        for topic, is_processed in ((self.source, True), (self.internal["by-value-repartition"], False)):
            for partition in range(2):
                end = len([each for each in self.topics.get(topic) if each[1] == partition])
                text = encode_processor_metadata(_TIME + partition, {})
                offset = end if is_processed else end // 2
                offsets.append(TopicPartition(topic, partition, offset, text))
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()

    def entries(self, store: str) -> Mapping[bytes, bytes]:
        """Return the entries of a store; fail if a key is in two partitions, or not in that of its key."""
        topic = f"{self.id}-{store}-changelog"
        found: dict[tuple[int, bytes], bytes | None] = {}
        for _, partition, _, _, key, value, _ in self.topics.get(topic):
            found[partition, key or b""] = value
        live = {place: value for place, value in found.items() if value is not None}
        count = self.topics.partitions(topic)
        assert all(default_partition(key, count) == partition for partition, key in live)
        return {key: value for (_, key), value in live.items()}

    def unprocessed(self) -> Mapping[bytes, list[bytes]]:
        """Return key → values of the records that the application has not processed, in order."""
        topic = self.internal["by-value-repartition"]
        found: dict[bytes, list[bytes]] = defaultdict(list)
        committed = self.committed(topic)
        for _, partition, offset, _, key, value, _ in self.topics.get(topic):
            if offset >= committed[partition].offset:
                assert default_partition(key or b"", len(committed)) == partition
                found[key or b""].append(value or b"")
        return found

    def committed(self, topic: str) -> list[TopicPartition]:
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": self.id})
        try:
            partitions = range(self.topics.partitions(topic))
            return consumer.committed([TopicPartition(topic, each) for each in partitions], 30)
        finally:
            consumer.close()

    def check(
        self, before: Mapping[str, Mapping[bytes, bytes]], waiting: Mapping[bytes, list[bytes]]
    ) -> None:
        """Check that the application has 5 partitions, the same entries and the same unprocessed records."""
        assert {self.topics.partitions(topic) for topic in (self.source, *self.internal.values())} == {5}
        assert {store: self.entries(store) for store in before} == before
        assert self.unprocessed() == waiting
        assert [each.offset for each in self.committed(self.source)[2:]] == [0, 0, 0]
        times = [decode_time(each.metadata or "") for each in self.committed(self.source)]
        assert times == [_TIME + 1] * 5  # the latest of both tasks: a key of any may be in each


@pytest.fixture
def app(kafka: LocalBroker, unique: Callable[[str], str]) -> _StoppedApplication:
    app = _StoppedApplication(kafka.bootstrap_servers, Topics(kafka.bootstrap_servers), unique("stopped"))
    app.create()
    return app


def _reshard_and_die(text: str, servers: str, source: str, operations: int) -> None:
    """Reshard in a process of its own, which dies after some operations."""
    die_after(operations, start)
    (document,) = load_text(text, "app.yaml").documents
    options = ReshardOptions(partitions={source: 5})
    reshard_application(document, Connection(bootstrap_servers=(servers,)), options, unreported)


def test_a_reshard_that_is_killed_at_each_step_is_completed(app: _StoppedApplication) -> None:
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    assert len(before["kept"]) == len(_KEYS) - len(_KEYS[::7])
    assert waiting
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    for killed in range(100):
        process = context.Process(target=_reshard_and_die, args=(app.text(), app.servers, app.source, killed))
        process.start()
        process.join(60)
        assert process.exitcode in (0, -signal.SIGKILL)
        if process.exitcode == 0:
            break
    assert killed > 3
    app.check(before, waiting)


def test_the_commands_of_the_page(app: _StoppedApplication, tmp_path: Path) -> None:
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    file = tmp_path / "orders.yaml"
    file.write_text(app.text())

    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, [*words, "--bootstrap-server", app.servers], standalone_mode=True)
        return done.exit_code, done.output

    reshard = ("reshard", str(file), "--partitions", f"{app.source}=5")
    code, text = run(*reshard, "--check")
    assert (code, "Nothing was changed." in text) == (0, True), text
    assert app.topics.partitions(app.source) == 2
    code, text = run("reshard", str(file), "--partitions", f"{app.source}=1")
    assert (code, "ReshardRefused" in text) == (1, True), text
    code, text = run("reshard", str(file), "--partitions", "payments=4")
    assert (code, "payments is not a source topic" in text) == (1, True), text
    code, text = run("reshard", str(file), "--layout", "kept=round")
    assert (code, "round is no layout" in text) == (64, True), text

    code, text = run(*reshard)
    assert code == 0, text
    assert f"{app.id}-kept-changelog: 2 → 5 partitions" in text
    app.check(before, waiting)
    code, text = run(*reshard)
    assert (code, "no state has to move" in text) == (0, True), text

    file.write_text(app.text("renamed"))
    copy = ("state", "copy", str(file))
    assert run(*copy)[0] == 64
    code, text = run(*copy, "--store", "missing=renamed")
    assert (code, "does not exist" in text) == (1, True), text
    code, text = run(*copy, "--store", "totals=renamed")
    assert code == 0, text
    assert app.entries("renamed") == before["totals"] == app.entries("totals")
    settings = app.topics.settings(f"{app.id}-renamed-changelog")
    assert settings["cleanup.policy"] == "compact"
    code, text = run(*copy, "--store", "totals=renamed")
    assert (code, "it has records already" in text) == (1, True), text


def test_an_application_that_runs_is_refused(app: _StoppedApplication) -> None:
    (document,) = load_text(app.text(), "app.yaml").documents
    options = ReshardOptions(partitions={app.source: 5}, wait_seconds=0)
    member = Consumer({"bootstrap.servers": app.servers, "group.id": app.id})
    member.subscribe([app.source])
    try:
        while not member.assignment():
            member.poll(0.1)
        with pytest.raises(ProblemsError) as raised:
            reshard_application(document, Connection(bootstrap_servers=(app.servers,)), options, unreported)
    finally:
        member.close()
    assert [problem.code.value for problem in raised.value.problems] == ["GroupActive"]
    assert app.topics.partitions(app.source) == 2
