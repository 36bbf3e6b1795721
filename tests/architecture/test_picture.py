"""The picture of the packages in ARCHITECTURE.md and the imports of the code say the same."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[2]
ROOTS = ("headwater", "headwater_spark")

_INTERFACES = {
    "headwater_spark.applications": "headwater_spark.commands",
    "headwater_spark.partitioners": "headwater_spark.engine",
    "headwater_spark.processors": "headwater_spark.engine",
    "headwater_spark.stream_threads": "headwater_spark.driver",
    "headwater_spark.testing": "headwater_spark.commands",
}
"""Public interfaces for users' classes → the package that they belong to."""

_PICTURE = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
_NODE = re.compile(r'(\w+)\["([^"]+)"\]')
_ARROW = re.compile(r'^\s*(\w+)(?:\["[^"]+"\])? --> (\w+(?: & \w+)*)$', re.MULTILINE)

Arrows = Mapping[str, frozenset[str]]


def drawn() -> Arrows:
    """Return package → packages that it points to."""
    found = _PICTURE.search((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert found is not None
    picture = found[1]
    names = dict(_NODE.findall(picture))
    arrows: dict[str, set[str]] = {name: set() for name in names.values()}
    for start, ends in _ARROW.findall(picture):
        arrows[names[start]].update(names[end] for end in ends.split(" & "))
    return {name: frozenset(ends) for name, ends in arrows.items()}


@cache
def imported() -> Arrows:
    """Return package → packages that it imports directly."""
    graph = grimp.build_graph(*ROOTS, cache_dir=None)
    imports: dict[str, set[str]] = {}
    for module in graph.modules:
        if package := _package(module):
            targets = imports.setdefault(package, set())
            for target in graph.find_modules_directly_imported_by(module):
                targets.add(_package(target) or package)
    return {package: frozenset(targets - {package}) for package, targets in imports.items()}


def test_the_picture_shows_every_package() -> None:
    assert set(drawn()) == set(imported())


def test_every_arrow_is_an_import() -> None:
    assert not [f"{start} --> {end}" for start, ends in drawn().items() for end in ends - imported()[start]]


def test_every_import_follows_the_arrows() -> None:
    assert not [
        f"{start} imports {end}"
        for start, ends in imported().items()
        for end in ends
        if end not in reachable(start)
    ]


def test_no_arrow_is_implied_by_others() -> None:
    assert not [
        f"{start} --> {end}"
        for start, ends in drawn().items()
        for end in ends
        if any(end in reachable(other) for other in ends - {end})
    ]


def test_the_packages_form_no_cycle() -> None:
    assert not [start for start in drawn() if start in reachable(start)]


def reachable(start: str) -> frozenset[str]:
    return frozenset(_reachable(start, drawn()))


def _reachable(start: str, arrows: Arrows) -> Iterator[str]:
    waiting, seen = list(arrows[start]), set[str]()
    while waiting:
        package = waiting.pop()
        if package not in seen:
            seen.add(package)
            yield package
            waiting.extend(arrows[package])


def _package(module: str) -> str | None:
    """Return the box of the picture that a module belongs to; None for a root's own `__init__`."""
    parts = module.split(".")
    parts = _INTERFACES.get(".".join(parts[:2]), module).split(".")
    return "/".join(parts[:2]) if len(parts) > 1 else None
