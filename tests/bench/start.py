"""Time from `headwater run` to the state RUNNING, and to the first result, with Spark's class archive."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from headwater_spark.driver.states import ClientState
from tests.bench.figures import Figure
from tests.pulumi.cluster import Cluster

_ROUNDS = 3
_RUNNING_GOAL_SECONDS = 6.0
_TIMEOUT_SECONDS = 120
_DOCUMENT = """
application: {id: ID}
topology:
  - stream: {topic: SOURCE, serdes: {key: string, value: string}}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: SINK, serdes: {key: string, value: long}}
"""


def run(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    taken = [_seconds(folder, broker.bootstrap_servers, f"start-{number}") for number in range(_ROUNDS + 1)]
    # The first start fills the page cache, and creates the archive of classes if there is none.
    running, result = (statistics.median(seconds) for seconds in zip(*taken[1:], strict=True))
    yield Figure(what="start to RUNNING, warm", unit="s", ours=running, goal=_RUNNING_GOAL_SECONDS)
    yield Figure(what="start to the first result, warm", unit="s", ours=result)
    yield Figure(what="start to RUNNING, the first time", unit="s", ours=taken[0][0])


def _seconds(folder: Path, servers: str, id_: str) -> tuple[float, float]:
    """Return the seconds from the start of a new application to RUNNING and to its first result."""
    source, sink, document = f"{id_}-in", f"{id_}-out", folder / f"{id_}.yaml"
    document.write_text(_DOCUMENT.replace("ID", id_).replace("SOURCE", source).replace("SINK", sink))
    for topic in (source, sink):
        Cluster(servers).create(topic, 1)
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(source, b"value", b"key")
    producer.flush()
    command = [sys.executable, "-m", "headwater.cli", "run", str(document), "--bootstrap-server", servers]
    command += ["--checkpoint", str(folder / id_ / "checkpoint"), "--state-dir", str(folder / id_ / "state")]
    command += ["--log-format", "json", "--master", "local[2]"]
    started = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            _await_running(process)
            running = time.monotonic() - started
            _await_result(servers, sink)
            result = time.monotonic() - started
        finally:
            process.terminate()
            process.communicate(timeout=_TIMEOUT_SECONDS)
    return running, result


def _await_running(process: "subprocess.Popen[str]") -> None:
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        fields = json.loads(line) if line.startswith("{") else {}
        if fields.get("new") == ClientState.RUNNING.value:
            return
    raise RuntimeError(f"ended before it was running:\n{''.join(lines[-20:])}")


def _await_result(servers: str, sink: str) -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": sink, "fetch.wait.max.ms": 5})
    try:
        consumer.assign([TopicPartition(sink, 0, 0)])
        message = consumer.poll(_TIMEOUT_SECONDS)
        assert message is not None, f"no result in {sink}"
        assert message.error() is None, message.error()
    finally:
        consumer.close()
