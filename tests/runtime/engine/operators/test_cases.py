"""Operators by text: topology, input, and what comes out, in `cases/*.txt`.

    # what the case shows
    topology in YAML
    ---
    key=value @time      a record of `in` (strings; `-` is null); `wall +500` lets the clock advance,
    ===                  ends a batch (each line is one where there is no such line)
    ---
    topic key=value @time

`setting NAME=VALUE` before the topology changes the engine's settings. Changelogs are left out unless the
case says `changelogs`. The answers follow from the Kafka Streams 4.1.1 classes that the operators name.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.model.formats import Format
from headwater.model.nodes import SinkNode
from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.records import OutputRecord, Windowed
from headwater_spark.engine.serdes import serde_of
from tests.runtime.topology_runner import APPLICATION, TopologyRunner

CASES = sorted((Path(__file__).parent / "cases").glob("*.txt"))


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_case(file: Path) -> None:
    head, inputs, expected = file.read_text().split("---\n")
    settings, logs, topology = _head(head)
    runner = TopologyRunner(topology, settings)
    answers = [
        line
        for batch in _batches(inputs)
        for output in _answer(runner, batch)
        for line in _shown(runner, output, logs)
    ]
    assert answers == expected.splitlines()


def _head(text: str) -> tuple[EngineSettings, bool, str]:
    numbers: dict[str, int] = {}
    topology = []
    for line in text.splitlines():
        if line.startswith("setting "):
            name, _, value = line.removeprefix("setting ").partition("=")
            numbers[name] = int(value)
        elif line != "changelogs":
            topology.append(line)
    settings = EngineSettings(**{"cache_max_bytes": 0, "emit_interval_ms": 0, **numbers})  # type: ignore[arg-type]
    return settings, "changelogs" in text.splitlines(), "\n".join(topology)


def _batches(text: str) -> Iterator[list[str]]:
    if "===" in text:
        yield from (part.strip().splitlines() for part in text.split("==="))
    else:
        yield from ([line] for line in text.splitlines())


def _answer(runner: TopologyRunner, batch: list[str]) -> list[OutputRecord]:
    if batch and batch[0].startswith("wall +"):
        return runner.advance_wall_clock(int(batch[0].removeprefix("wall +")))
    records = []
    for line in batch:
        pair, _, time = line.rpartition(" @")
        key, _, value = pair.partition("=")
        records.append(runner.record("in", _bytes(key), _bytes(value), int(time)))
    return runner.feed(*records)


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else text.encode()


def _shown(runner: TopologyRunner, output: OutputRecord, logs: bool) -> Iterator[str]:  # noqa: FBT001
    topic, _, key, value, time, _ = output
    if topic.startswith(f"{APPLICATION}-"):
        if logs and topic.endswith("-changelog"):
            name = topic.removeprefix(f"{APPLICATION}-")
            yield f"{name} {_text(key, None)}={'-' if value is None else value.hex()} @{time}"
        return
    record = next(
        node.writes.format
        for program in runner.programs
        for node in program.nodes
        if isinstance(node, SinkNode) and node.writes is not None and program.topic(node.name) == topic
    )
    yield f"{topic} {_text(key, record.key)}={_text(value, record.value)} @{time}"


def _text(data: bytes | None, wanted: Format | None) -> str:
    if data is None:
        return "-"
    value = serde_of(wanted or Format("string"), {}).deserialize(data)
    return f"{value.key}@{value.start}-{value.end}" if isinstance(value, Windowed) else str(value)
