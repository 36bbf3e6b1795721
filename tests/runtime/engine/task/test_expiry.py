"""Entries that are no longer visible are deleted from disk, with all index entries."""

import pytest

from headwater_spark.engine.program_interface import EngineSettings
from tests.runtime.engine.task.topologies import TOPOLOGIES
from tests.runtime.topology_runner import TopologyRunner

WINDOWED = ["tumbling", "hopping", "sliding", "session", "tumbling on close", "session on close"]


@pytest.mark.parametrize("cache", [0, 1000])
@pytest.mark.parametrize("name", WINDOWED)
def test_expired_windows_are_deleted(name: str, cache: int) -> None:
    runner = TopologyRunner(TOPOLOGIES[name], EngineSettings(cache_max_bytes=cache, emit_interval_ms=0))
    stored = runner.states["0"].store(runner.programs[0].stores[0].name)
    for number in range(50):
        runner.feed(runner.record("in", b"old-%d" % number, b"v", 1000 * number))
    assert sum(b"old-" in entry_key for entry_key, _ in stored.range()) >= 50
    runner.feed(runner.record("in", b"new", b"v", 10_000_000))
    runner.reopen()
    runner.feed(runner.record("in", b"new", b"v", 10_000_001))
    assert [entry_key for entry_key, _ in stored.range() if b"old-" in entry_key] == []
