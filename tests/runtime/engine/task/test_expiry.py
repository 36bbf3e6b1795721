"""What can no longer be seen leaves the disk, and with it every trace of its keys."""

import pytest

from spark_jobs.runtime.engine.program_interface import EngineSettings
from tests.runtime.engine.task.topologies import TOPOLOGIES
from tests.runtime.topology_runner import Driver

WINDOWED = ["tumbling", "hopping", "sliding", "session", "tumbling on close", "session on close"]


@pytest.mark.parametrize("cache", [0, 1000])
@pytest.mark.parametrize("name", WINDOWED)
def test_expired_windows_are_taken_out(name: str, cache: int) -> None:
    driver = Driver(TOPOLOGIES[name], EngineSettings(cache_max_bytes=cache, emit_interval_ms=0))
    stored = driver.states["0"].store(driver.programs[0].stores[0].name)
    for number in range(50):
        driver.feed(driver.record("in", b"old-%d" % number, b"v", 1000 * number))
    assert sum(b"old-" in place for place, _ in stored.range()) >= 50
    driver.feed(driver.record("in", b"new", b"v", 10_000_000))
    driver.reopen()
    driver.feed(driver.record("in", b"new", b"v", 10_000_001))
    assert [place for place, _ in stored.range() if b"old-" in place] == []
