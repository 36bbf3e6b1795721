"""`make bench-check`: compare two commits by running benchmarks of both alternately. Fails below 0.9."""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
import click
from rich.console import Console
from rich.table import Table

from tests.bench.figures import Figure, Results, number

_LEAST = 0.9
_DEFAULT = ("compile", "engine")
_ROOT = Path(__file__).parents[2]
_SOURCE_ROOTS = ("infra", "spark_jobs")


@attrs.frozen
class Change:
    """A figure of two commits, each the median of all rounds."""

    old: Figure
    new: Figure

    @property
    def speed(self) -> float:
        """How many times as fast the new commit is."""
        return self.new.ours / self.old.ours if self.old.is_rate else self.old.ours / self.new.ours


def changes(old: Sequence[Results], new: Sequence[Results]) -> tuple[Change, ...]:
    """Return a change for each figure that both commits have, from the results of each round."""
    before, after = _medians(old), _medians(new)
    return tuple(Change(before[key], after[key]) for key in before if key in after)


def slower(found: Sequence[Change]) -> tuple[Change, ...]:
    """Return the changes that fail the check."""
    return tuple(change for change in found if change.speed < _LEAST)


@click.command()
@click.argument("old")
@click.argument("new", default="HEAD")
@click.option("--benchmark", "benchmarks", multiple=True, default=_DEFAULT, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
def main(old: str, new: str, benchmarks: tuple[str, ...], rounds: int) -> None:
    """Compare the speed of the commits OLD and NEW.

    Exit code 1: a figure of NEW is less than 0.9 times as fast as that of OLD.
    """
    results: dict[str, list[Results]] = {old: [], new: []}
    with (
        tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder,
        _trees((old, new), Path(folder)) as trees,
    ):
        for round_ in range(rounds):
            for commit, tree in trees.items():
                click.echo(f"round {round_ + 1} of {rounds}: {', '.join(benchmarks)} of {commit}", err=True)
                results[commit].append(_run(tree, benchmarks))
    found = changes(results[old], results[new])
    if not found:
        raise click.ClickException(f"{old} and {new} have no figure in common. Choose other benchmarks.")
    Console(width=150).print(_table(found))
    if failed := slower(found):
        raise click.ClickException(f"{len(failed)} of {len(found)} figures are below {_LEAST} of {old}.")


@contextmanager
def _trees(commits: Sequence[str], folder: Path) -> Iterator[Mapping[str, Path]]:
    """Check out each commit in a temporary worktree."""
    trees = {commit: folder / str(number) for number, commit in enumerate(commits)}
    try:
        for commit, tree in trees.items():
            _git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        yield trees
    finally:
        for tree in trees.values():
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=_ROOT, check=False)


def _git(*arguments: str) -> None:
    outcome = subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=False)
    if outcome.returncode:
        raise click.ClickException(outcome.stderr.strip())


def _run(tree: Path, benchmarks: Sequence[str]) -> Results:
    file = tree / "results.json"
    command = [sys.executable, "-m", "tests.bench", *benchmarks, "--output", str(file)]
    outcome = subprocess.run(
        command, cwd=tree, env=environment_of(tree), stdout=subprocess.DEVNULL, check=False
    )
    if outcome.returncode:
        raise click.ClickException(
            "The benchmarks of a commit failed (see above). Commits without `tests.bench --output` cannot be "
            "compared."
        )
    return Results.read(file)


def environment_of(tree: Path) -> Mapping[str, str]:
    """Return variables with which Python imports the packages of a worktree.

    The environment of this program has installed the packages of its own worktree: without these variables,
    both commits would run the same code.
    """
    roots = (tree, *(tree / root for root in _SOURCE_ROOTS))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, roots))}


def _medians(rounds: Sequence[Results]) -> dict[tuple[str, str, str], Figure]:
    found: dict[tuple[str, str, str], list[Figure]] = {}
    for results in rounds:
        for name, figure in results:
            found.setdefault((name, figure.title, figure.peer), []).append(figure)
    return {
        key: attrs.evolve(each[0], ours=statistics.median(figure.ours for figure in each))
        for key, each in found.items()
    }


def _table(found: Sequence[Change]) -> Table:
    table = Table("", "old", "new", "times as fast")
    for change in sorted(found, key=lambda each: each.speed):
        mark = " (too slow)" if change.speed < _LEAST else ""
        old, new = number(change.old.ours, change.old.unit), number(change.new.ours, change.new.unit)
        table.add_row(change.old.title, old, new, f"{change.speed:.2f}{mark}")
    return table


if __name__ == "__main__":
    main()
