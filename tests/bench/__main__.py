"""`make bench`: compare Headwater with plain programs on one machine. Arguments choose benchmarks."""

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.bench import admin_requests, agent, compilation, drift, engine, memory, previews, scale
from tests.bench.runtime import comparison, threads
from toolchain import PulumiToolchain, ensure_kafka, ensure_pulumi
from toolchain.broker import Broker, Settings

_BENCHMARKS: Mapping[str, Callable[[Path, PulumiToolchain, Broker], None]] = {
    "compile": compilation.run,
    "requests": admin_requests.run,
    "previews": previews.run,
    "drift": drift.run,
    "engine": engine.run,
    "memory": memory.run,
    "agent": agent.run,
    "scale": scale.run,
    "runtime": comparison.run,
    "threads": threads.run,
}


def main() -> None:
    wanted = sys.argv[1:] or list(_BENCHMARKS)
    toolchain = ensure_pulumi()
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        settings = Settings(heap_mb=512, sustained_load=True)
        with Broker(ensure_kafka(), Path(folder, "kafka"), settings) as broker:
            for name in wanted:
                _BENCHMARKS[name](Path(folder), toolchain, broker)


if __name__ == "__main__":
    main()
