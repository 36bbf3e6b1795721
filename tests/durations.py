"""How long each test module takes: recorded by test runs, kept in `durations.json`, used by `scheduling`.

A run with several workers writes `build/durations.json`. `make durations` copies what it recorded: a run of
some modules refreshes only these. Modules that no longer exist are forgotten. The CPU time of a module
includes the time of all processes that its tests start (`processor_time`), except brokers that modules share.
"""

import json
import os
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.processor_time import ControlGroup, used_seconds

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "tests" / "durations.json"
RECORDED = ROOT / "build" / "durations.json"
SPARK_SESSION = "Spark session"
ALL_VERSIONS = "versions of Kafka Streams"
SECURED_CLUSTER = "secured cluster"
_PROCESSOR, _SHARES, _COLLECTION = "processor_seconds", "shares", "collection_seconds"


@attrs.frozen(kw_only=True)
class ModuleDuration:
    """What one module took. `shared_setup_seconds` is what only its first test set up.

    `shares` is what its tests share with other modules of the same worker: a Spark session, the JVMs of all
    versions of Kafka Streams, or the secured cluster of the tests of ACLs.
    """

    seconds: float
    processor_seconds: float
    shared_setup_seconds: float = 0.0
    tests: int = 1
    shares: str = ""

    @property
    def computes(self) -> bool:
        """It has a processor for at least a third of its time: what each worker of a busy run gets."""
        return bool(self.shares) or self.processor_seconds >= self.seconds / 3


def load_durations(file: Path = KEPT) -> Mapping[str, ModuleDuration]:
    """Return module → duration; `file` need not exist."""
    if not file.exists():
        return {}
    return {path: ModuleDuration(**each) for path, each in json.loads(file.read_text()).items()}


def save_durations(durations: Mapping[str, ModuleDuration], file: Path) -> None:
    """Write one module a line, so that differences can be read."""
    lines = (
        f"{json.dumps(path)}: {json.dumps(attrs.asdict(each, filter=_differs))}"
        for path, each in sorted(durations.items())
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def estimate_duration(source: str) -> ModuleDuration:
    """Return the duration of a module that no run has recorded, from its source."""
    if "spark: SparkSession" in source:
        return ModuleDuration(seconds=60, processor_seconds=60, shares=SPARK_SESSION)
    if any(sign in source for sign in ("pytest.mark.spark", "pytest.mark.pulumi", "pytest.mark.oracle")):
        return ModuleDuration(seconds=60, processor_seconds=60)
    if any(sign in source for sign in ("pytest.mark.broker", "own_broker:")):
        return ModuleDuration(seconds=30, processor_seconds=0)
    return ModuleDuration(seconds=0, processor_seconds=0)


def records_durations(config: pytest.Config) -> bool:
    """Return whether a run records durations, given the config of its first process: `make test` does."""
    return bool(config.getoption("dist", "no") == "loadscope")


class DurationRecorder:
    """A plugin of pytest: workers measure, the process that distributes the tests adds up and writes.

    `group` is the control group of a worker, `find_brokers` finds the control group of the shared brokers.
    """

    def __init__(
        self,
        group: ControlGroup | None = None,
        find_brokers: Callable[[], ControlGroup | None] = lambda: None,
    ) -> None:
        self._find_brokers = find_brokers
        self._collection = 0.0
        self._modules: dict[str, ModuleDuration] = {}
        self._setups: dict[str, list[float]] = {}
        self._group = group
        self._spent = used_seconds(group)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._spent = used_seconds(self._group)
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_COLLECTION] = self._spent

    def pytest_testnodedown(self, node: Any) -> None:  # noqa: ANN401 - xdist's WorkerController, untyped
        self._collection += getattr(node, "workeroutput", {}).get(_COLLECTION, 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what needed the CPU time of the run: tests, or what surrounds them."""
        brokers = self._find_brokers()
        spent = {
            "tests": sum(each.processor_seconds for each in self._modules.values()),
            "collection": self._collection,
            "distribution": time.process_time(),
            **({} if brokers is None else {"shared brokers": used_seconds(brokers)}),
        }
        parts = ", ".join(f"{what} {seconds:.0f} s" for what, seconds in spent.items())
        terminalreporter.write_line(f"CPU time: {parts}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = used_seconds(self._group)
        report.user_properties.append((_PROCESSOR, now - self._spent))
        report.user_properties.append((_SHARES, _shared_resource(getattr(item, "fixturenames", ()))))
        self._spent = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        path = report.nodeid.partition("::")[0]
        before = self._modules.get(path, ModuleDuration(seconds=0, processor_seconds=0, tests=0))
        properties = dict(report.user_properties)
        is_setup = report.when == "setup"
        setups = self._setups.setdefault(path, [])
        setups += [report.duration] * is_setup
        self._modules[path] = ModuleDuration(
            seconds=before.seconds + report.duration,
            processor_seconds=before.processor_seconds + float(str(properties.get(_PROCESSOR, 0))),
            shared_setup_seconds=max(setups) - min(setups) if setups else 0.0,
            tests=before.tests + is_setup,
            shares=before.shares or str(properties.get(_SHARES, "")),
        )

    def pytest_sessionfinish(self) -> None:
        if "PYTEST_XDIST_WORKER" not in os.environ:
            save_durations({path: _rounded(each) for path, each in self._modules.items()}, RECORDED)


def _shared_resource(fixtures: tuple[str, ...]) -> str:
    if "spark" in fixtures:
        return SPARK_SESSION
    if "secured_cluster" in fixtures:
        return SECURED_CLUSTER
    return ALL_VERSIONS if "kafka_streams_of" in fixtures and "kafka_streams" not in fixtures else ""


def _rounded(each: ModuleDuration) -> ModuleDuration:
    return attrs.evolve(
        each,
        seconds=round(each.seconds, 1),
        processor_seconds=round(each.processor_seconds, 1),
        shared_setup_seconds=round(each.shared_setup_seconds, 1),
    )


def _differs(attribute: "attrs.Attribute[object]", value: object) -> bool:
    return value != attribute.default


def main() -> None:
    """Keep what the last run recorded, and forget modules that no longer exist."""
    known = {**load_durations(), **load_durations(RECORDED)}
    save_durations({path: each for path, each in known.items() if (ROOT / path).exists()}, KEPT)


if __name__ == "__main__":
    main()
