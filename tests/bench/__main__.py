"""`make bench`: compare Headwater with plain programs on one machine. Arguments choose benchmarks."""

import os
import platform
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import click

from headwater.toolchain import PulumiToolchain, ensure_kafka, ensure_pulumi
from headwater.toolchain.broker import Broker, Settings
from tests.bench import (
    admin_requests,
    agent,
    compilation,
    drift,
    engine,
    idle,
    memory,
    previews,
    report,
    scale,
    start,
)
from tests.bench.figures import Figure, Measured, Results, shown
from tests.bench.growth import growth
from tests.bench.runtime import comparison, processors, threads

_BENCHMARKS: Mapping[str, Callable[[Path, PulumiToolchain, Broker], Iterator[Figure]]] = {
    "compile": compilation.run,
    "requests": admin_requests.run,
    "previews": previews.run,
    "drift": drift.run,
    "engine": engine.run,
    "memory": memory.run,
    "agent": agent.run,
    "scale": scale.run,
    "growth": growth.run,
    "start": start.run,
    "idle": idle.run,
    "runtime": comparison.run_operators,
    "keys": comparison.run_keys,
    "stateful": comparison.run_stateful,
    "further": comparison.run_further,
    "latency": comparison.run_latency,
    "threads": threads.run,
    "processors": processors.run,
}
_SETTINGS = "HEADWATER_BENCH_"
_BROKER = Settings(heap_mb=512, sustained_load=True)


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(_BENCHMARKS)))
@click.option("--save", is_flag=True, help="Write the results into README.md and docs/benchmarks.md.")
@click.option("--output", type=click.Path(path_type=Path), help="Write the results to this JSON file.")
def main(names: tuple[str, ...], output: Path | None, *, save: bool) -> None:
    """Run benchmarks, by default all of them."""
    if save and os.environ.get(comparison.WORKLOADS):
        raise click.UsageError(
            f"With {comparison.WORKLOADS}, the saved table would miss the other workloads."
        )
    toolchain = ensure_pulumi()
    results, commit = Results(), _commit()
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        for name in names or _BENCHMARKS:
            work = Path(folder, name)
            # topics of an earlier benchmark would change the result
            with Broker(ensure_kafka(), work / "kafka", _BROKER) as broker:
                figures = []
                for figure in _BENCHMARKS[name](work, toolchain, broker):
                    click.echo(shown([figure]))
                    figures.append(figure)
            results = results.having(name, _measured(tuple(figures), commit))
            if output is not None:
                results.write(output)
            if save:
                report.write(report.saved().having(name, results.benchmarks[name]))


def _commit() -> str:
    """Return the commit; `-dirty` if files differ from it, other than results of earlier benchmarks."""
    results = [f":(exclude){file.relative_to(report.ROOT)}" for file in report.FILES]
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *results)
    return _git("rev-parse", "--short=10", "HEAD") + ("-dirty" if changed else "")


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=report.ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _measured(figures: tuple[Figure, ...], commit: str) -> Measured:
    settings = (
        f"`{name}={value}`" for name, value in sorted(os.environ.items()) if name.startswith(_SETTINGS)
    )
    return Measured(
        figures=figures,
        commit=commit,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        machine=_machine(),
        settings=", ".join(settings),
    )


def _machine() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return f"{os.cpu_count()} cores {model or platform.machine()}, {memory_gib:.0f} GiB, {platform.system()}"


if __name__ == "__main__":
    main()
