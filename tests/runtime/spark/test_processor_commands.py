"""KIP-287: processors are added to a running application with the commands and over HTTP."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.control import Access, ControlServer, Surface
from headwater.toolchain.broker.local import LocalBroker
from headwater_spark.driver.application import StreamsApplication
from headwater_spark.driver.metrics import Instruments
from tests.control.conftest import HttpClient
from tests.runtime.spark.growing import DOCUMENT, Growing, new_growing

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture
def growing(spark: SparkSession, kafka: LocalBroker, tmp_path: Path, unique: Callable[[str], str]) -> Growing:
    return new_growing(spark, kafka.bootstrap_servers, unique("app"), tmp_path)


@contextmanager
def _served(client: StreamsApplication) -> Iterator[HttpClient]:
    surface = Instruments(client, "client").added_to(Surface.create("client", host="here"))
    with ControlServer(surface, Access("127.0.0.1", 0)) as server:
        yield HttpClient(server.url)


@contextmanager
def _ordering(growing: Growing) -> Iterator[None]:
    """Produce orders inside the block."""
    ended = Event()

    def produce() -> None:
        while not ended.wait(0.1):
            growing.order(1)

    thread = Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["processors", *arguments], prog_name="headwater")


def _state(growing: Growing, processors: int) -> Result:
    """Run `headwater processors status` with a document."""
    file = growing.folder / "growing.yaml"
    file.write_text(DOCUMENT.replace("APP", growing.id).replace("processors: 2", f"processors: {processors}"))
    return _run("status", str(file), "--bootstrap-server", growing.servers)


def test_the_command_adds_processors_to_a_running_application(growing: Growing) -> None:
    with growing.run() as client, _served(client) as endpoint:
        growing.name_customers("named")
        client.wait_until_idle()
        growing.order(5)
        refused = _run("expand", endpoint.url, "--to", "4")
        assert refused.exit_code == ExitCode.PROBLEMS
        assert f"{growing.id} was not expanded. Nothing has changed." in refused.stderr
        assert "has fewer partitions than 4 processors" in refused.stderr
        growing.expand(4)
        growing.expand_repartition_topic(4)
        growing.order(5)
        growing.await_results(client)
        answer = endpoint.post("/control/processors", {"processors": 1})
        assert (answer.status, answer.json["problems"][0]["code"]) == (409, "ProcessorCount")
        with _ordering(growing):
            done = _run("expand", endpoint.url, "--to", "4")
        assert done.exit_code == ExitCode.DONE, done.output
        assert " records remaining" in done.stderr
        assert f"{growing.id} has 4 processors. Declare `processors: 4` in its document" in done.stdout
        growing.order(5)
        growing.await_results(client)
        answer = endpoint.post("/control/processors", {"processors": 4})
        assert (answer.status, answer.json["processors"], answer.json["target"]) == (200, 4, None)
        assert answer.json["copied"] > 0
        metric = f'headwater_runtime_processors{{application_id="{growing.id}"}} 4.0'
        assert metric in endpoint.get("/metrics").text
    outdated = _state(growing, 2)
    assert outdated.exit_code == ExitCode.DRIFT
    assert "2 processors are declared. Declare `processors: 4`, as the state has" in outdated.stdout
    assert _state(growing, 4).exit_code == ExitCode.DONE
