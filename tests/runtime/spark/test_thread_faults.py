"""Large batches, then stream threads that change under load while workers are killed.

The output is compared with the input. In `make test`, `test_stream_threads` changes threads and kills a
worker, and `runtime/spark_internals/test_evaluated_packing` packs records that Spark SQL evaluates.
"""

import os
import random
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from headwater.cli.main import main
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.queries.row_distribution import FEWEST_PACKED
from tests.control.conftest import HttpClient
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import TIMEOUT_SECONDS, ProcessApplication, kill
from tests.runtime.spark.processes import executors, jvm, python_workers

if TYPE_CHECKING:
    import subprocess

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.timeout(3000),
]

_RECORDS = 300
_LARGE = 5 * FEWEST_PACKED
"""Spark SQL writes a quarter of them in one transaction to one partition."""
_SMALL = FEWEST_PACKED // 4
_LOCAL, _CLUSTER = "local[4]", "local-cluster[2,2,1024]"
_HTTP = ("--http", "127.0.0.1:0")
_GENERATES_CODE = (
    *("--log-level", "debug"),
    # Spark's defaults: the test run lets Spark generate no code.
    *("--conf", "spark.sql.codegen.wholeStage=true"),
    *("--conf", "spark.sql.codegen.factoryMode=FALLBACK"),
)
_EVALUATED_DOCUMENT = """
application:
  id: counted
  config:
    processing.guarantee: GUARANTEE
    statestore.cache.max.bytes: 0
    repartition.purge.interval.ms: 200
topology:
  - stream: {topic: in, serdes: {key: string, value: string}}
  - filter: {where: "value is not null"}
  - mapValues: {value: "trim(value)"}
  - to: {topic: passed}
  - stream: {topic: passed, serdes: {key: string, value: string}}
  - selectKey: {key: "split(value, '-')[0]"}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: counted, serdes: {key: string, value: long}}
"""
"""Spark SQL evaluates the first sub-topology."""
_URL = re.compile(r"endpoint started.*?(http://[0-9.:]+)")


@pytest.fixture
def application(
    own_broker: Callable[[], Broker], spark_jars: tuple[str, ...], tmp_path: Path
) -> Iterator[ProcessApplication]:
    with own_broker() as broker:
        found = ProcessApplication(
            broker,
            Topics(broker.bootstrap_servers),
            tmp_path,
            spark_jars,
            config="num.stream.threads: 1",
            partitions=4,
        )
        found.set_up()
        yield found


def _targets(seed: int, number: int) -> Sequence[int]:
    """Return the numbers of threads: 3, 0, 2, then random ones."""
    draw = random.Random(seed)  # noqa: S311
    return [3, 0, 2, *(draw.randrange(4) for _ in range(number - 3))]


_SERIES = [
    pytest.param(_LOCAL, 2, 30, id="30 changes"),
    pytest.param(_CLUSTER, 3, 20, id="20 changes with executors"),
]


def test_results_are_exact_in_large_batches_and_while_threads_change_and_workers_are_killed(
    own_broker: Callable[[], Broker], spark_jars: tuple[str, ...], tmp_path: Path
) -> None:
    """Large batches are packed, with and without an evaluation by Spark SQL; smaller ones are not.

    The first one is read in two steps.
    """
    draw = random.Random(1)  # noqa: S311
    with own_broker() as broker:
        topics = Topics(broker.bootstrap_servers)
        application = ProcessApplication(broker, topics, tmp_path, spark_jars, document=_EVALUATED_DOCUMENT)
        application.set_up()
        application.feed(_LARGE)
        options = (*_HTTP, *_GENERATES_CODE)
        before = 0
        with application.run(_LOCAL, until_idle=False, max_records=_LARGE // 2, options=options) as process:
            for records in (_LARGE, _SMALL):
                if records == _SMALL:
                    application.feed(_SMALL)
                application.await_results(process)
                lines = application.log_lines()[before:]
                before += len(lines)
                packed = [line for line in lines if "records packed" in line]
                assert any("evaluated=True" in line for line in packed) == (records == _LARGE)
                assert any("evaluated=False" in line for line in packed) == (records == _LARGE)
                assert not [line for line in lines if "not packed" in line or "query failed" in line]
            endpoint = HttpClient(_endpoint(application))
            assert len(_threads(endpoint)) == 4, "as many as slots"
            _change_and_kill(application, process, _LOCAL, draw, _targets(1, 3))
            application.await_results(process)
            _stop_as_systemd(process, application)
        application.check_results()
        application.check_counts("counted-counts-changelog")
        application.check_log()


@pytest.mark.parametrize(("master", "seed", "number"), _SERIES)
def test_results_are_exact_while_threads_change_and_workers_are_killed(
    application: ProcessApplication, master: str, seed: int, number: int
) -> None:
    draw = random.Random(seed)  # noqa: S311
    application.feed(_RECORDS)
    with application.run(master, until_idle=False, max_records=100, options=_HTTP) as process:
        application.await_counted(1, process)
        assert len(_threads(HttpClient(_endpoint(application)))) == 1, "num.stream.threads"
        _change_and_kill(application, process, master, draw, _targets(seed, number))
        assert until(lambda: _is_done(application), TIMEOUT_SECONDS), application.log()
        _stop_as_systemd(process, application)
    application.check_results()
    application.check_log()


def _change_and_kill(
    application: ProcessApplication,
    process: "subprocess.Popen[bytes]",
    master: str,
    draw: random.Random,
    targets: Sequence[int],
) -> None:
    """Feed records, kill a worker while they are processed and change the number of threads, for each target.

    At least one thread is alive then.
    """
    endpoint = HttpClient(_endpoint(application))
    for threads in targets:
        before = application.counted()
        application.feed(_RECORDS)
        if _threads(endpoint):
            application.await_counted(before + draw.randrange(1, _RECORDS // 2), process)
            killed = until(lambda: any(_kill(process, master, draw)), TIMEOUT_SECONDS)
            assert killed, application.log()
        _change_to(threads, endpoint)
        assert process.poll() is None, application.log()
    assert _state(endpoint) in ("RUNNING", "REBALANCING")
    assert re.search(
        rf"^alive_stream_threads{{.*}} {targets[-1]}[.]0$", endpoint.get("/metrics").text, re.MULTILINE
    )
    if not targets[-1]:
        _change_to(1, endpoint)


def _stop_as_systemd(process: "subprocess.Popen[bytes]", application: ProcessApplication) -> None:
    """Send SIGTERM to the JVM, too, as without `KillMode=mixed`: this is an orderly stop."""
    for group in (process.pid, jvm(process.pid)):  # the JVM has a session of its own
        os.killpg(group, signal.SIGTERM)
    assert process.wait(TIMEOUT_SECONDS) == 0, application.log()
    assert "SparkEnded" not in application.log()


def _kill(process: "subprocess.Popen[bytes]", master: str, draw: random.Random) -> Iterator[bool]:
    """Kill a worker, and on a cluster sometimes an executor; yield whether the process existed."""
    if master == _CLUSTER and draw.random() < 0.3:
        yield from map(kill, executors(process.pid)[:1])
    yield from map(kill, python_workers(process.pid)[:1])


def _endpoint(application: ProcessApplication) -> str:
    log = re.sub(r"\x1b\[[0-9;]*m", "", (application.folder / "run.log").read_text(errors="replace"))
    found = _URL.search(log)
    assert found is not None, log
    return found[1]


def _is_done(application: ProcessApplication) -> bool:
    return len(application.topics.get("counted")) >= application.fed


def _threads(endpoint: HttpClient) -> list[Any]:
    """Return the threads that are alive."""
    threads = endpoint.get("/control/threads").json["threads"]
    return [thread for thread in threads if thread["state"] != "PENDING_SHUTDOWN"]


def _state(endpoint: HttpClient) -> str:
    return str(endpoint.get("/control/threads").json["state"])


def _change_to(number: int, endpoint: HttpClient) -> None:
    """Add or remove threads with the command, until `number` are alive."""
    while len(alive := _threads(endpoint)) != number:
        command = "add" if len(alive) < number else "remove"
        done = CliRunner().invoke(main, ["threads", command, endpoint.url], prog_name="headwater")
        assert done.exit_code == os.EX_OK, done.output
        assert "-StreamThread-" in done.stdout
