"""The commands, properties and Java code of docs/kafka-streams-applications.md."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from headwater.cli.main import main
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.streams_jar import JAR
from tests.quick_java import QUICK_JAVAC
from tests.streams_library.application import TestedApplication
from tests.streams_library.applications import NEWEST, Applications, class_path

pytestmark = [pytest.mark.broker, pytest.mark.oracle]

_PAGE = (
    Path(__file__).parents[2].joinpath("docs", "kafka-streams-applications.md").read_text(encoding="utf-8")
)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CLASS = """
import io.headwater.streams.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import java.time.Duration;
import java.util.*;

class Page%d {
    void page(Collection<String> topics) { }
    void run(KafkaStreams streams, Topology topology, Properties properties) {
%s
    }
}
"""


def blocks(kind: str) -> list[str]:
    found = [text for name, text in _BLOCK.findall(_PAGE) if name == kind]
    assert found
    return found


def commands() -> list[str]:
    lines = [line.partition("#")[0].strip() for text in blocks("sh") for line in text.splitlines()]
    named = re.findall(r"`(headwater (?:new|streams-library) [^`]*)`", _PAGE)
    return [line for line in (*lines, *named) if line]


def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert {command.split()[1] for command in commands()} == {"streams-library", "new"}
    for command in commands():
        program, *arguments = command.split()
        assert program == "headwater"
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, (command, done.output)
    assert (tmp_path / "libs" / JAR).is_file()


def test_the_java_code_can_be_compiled(tmp_path: Path) -> None:
    files = []
    for number, text in enumerate(blocks("java")):
        files.append(tmp_path / f"Page{number}.java")
        files[-1].write_text(_CLASS % (number, text), encoding="utf-8")
    subprocess.run(
        ["javac", *QUICK_JAVAC, "--release", "11", "-cp", class_path(NEWEST), "-d", tmp_path, *files],
        check=True,
    )


def test_an_application_starts_with_all_properties_of_the_page(
    applications_of: Callable[[str], Applications], kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    lines = [line for text in blocks("properties") for line in text.splitlines() if line]
    configs = dict(line.split("=", 1) for line in lines)
    assert configs["internal.topics.setup"] == "manual"
    java = applications_of(NEWEST)
    shop = TestedApplication(unique("shop"), kafka.bootstrap_servers)
    initial = int(configs["producer.static.partitioner.initial.partitions"])
    for topic in (shop.source, shop.sink):
        shop.create(topic, initial)
    all_configs = {**shop.configs(), **configs}
    java.initialize(shop.id, shop.topology, all_configs)
    java.start(shop.id, shop.topology, all_configs)
    java.await_tasks(shop.id, 2 * initial)
    shop.produce_static(70, initial=initial)
    shop.expand(shop.source, initial + 1)
    java.await_tasks(shop.id, 2 * (initial + 1))
    java.close(shop.id)
