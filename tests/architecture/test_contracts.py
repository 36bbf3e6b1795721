"""Each contract of `.importlinter` fails if it is violated: one that cannot fail protects nothing."""

import copy
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter.application.use_cases import read_user_options
from importlinter.configuration import configure
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract
from importlinter.domain.contract import ContractCheck

configure()
_OPTIONS = read_user_options(str(Path(__file__).parents[2] / ".importlinter"))
_ROOTS: Sequence[str] = _OPTIONS.session_options["root_packages"]
_IDS = [options["id"] for options in _OPTIONS.contracts_options]
_CLASSES: dict[str, type[ForbiddenContract | LayersContract | AcyclicSiblingsContract]] = {
    "forbidden": ForbiddenContract,
    "layers": LayersContract,
    "acyclic_siblings": AcyclicSiblingsContract,
}

Import = tuple[str, str]
"""Importing module, imported module."""


@cache
def _code() -> grimp.ImportGraph:
    return grimp.build_graph(*_ROOTS, include_external_packages=True, cache_dir=None)


def _options(contract: str) -> dict[str, Any]:
    return next(options for options in _OPTIONS.contracts_options if options["id"] == contract)


def check(contract: str, *violations: Import) -> ContractCheck:
    """Check a contract against the imports of the code and additional ones."""
    graph = copy.deepcopy(_code())
    for importer, imported in violations:
        if imported.partition(".")[0] not in _ROOTS and imported not in graph.modules:
            graph.add_module(imported, is_squashed=True)
        graph.add_import(importer=importer, imported=imported)
    options = _options(contract)
    kind = _CLASSES[options["type"]]
    return kind(options["name"], _OPTIONS.session_options, options).check(graph, verbose=False)


def _innermost(package: str) -> str:
    """Return a module deep inside a package: a contract covers these, too."""
    graph = _code()
    if package.partition(".")[0] not in _ROOTS or graph.is_module_squashed(package):
        return package
    return max(graph.find_descendants(package) | {package}, key=lambda name: (name.count("."), name))


def _overlap(one: str, other: str) -> bool:
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _of_type(kind: str) -> list[str]:
    return [options["id"] for options in _OPTIONS.contracts_options if options["type"] == kind]


@pytest.mark.parametrize("contract", _IDS)
def test_the_code_keeps_the_contract(contract: str) -> None:
    assert check(contract).kept


@pytest.mark.parametrize("contract", _of_type("forbidden"))
def test_every_forbidden_import_is_found(contract: str) -> None:
    options = _options(contract)
    forbidden = {
        (_innermost(source), _innermost(target)): (source, target)
        for source in options["source_modules"]
        for target in options["forbidden_modules"]
        if not _overlap(source, target)
    }
    assert forbidden
    found = {
        (link["importer"], link["imported"])
        for chains in check(contract, *forbidden).metadata["invalid_chains"]
        for chain in chains["chains"]
        for link in chain
        if len(chain) == 1
    }
    assert forbidden.keys() - found == set()


@pytest.mark.parametrize("contract", _of_type("forbidden"))
def test_each_module_is_listed_once(contract: str) -> None:
    """A module that is listed twice may replace a module that has to be listed."""
    options = _options(contract)
    for names in (options["source_modules"], options["forbidden_modules"]):
        assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("contract", _of_type("forbidden"))
def test_forbidden_modules_exist(contract: str) -> None:
    """A contract that forbids a misspelled module forbids nothing."""
    assert not [name for name in _options(contract)["forbidden_modules"] if not find_spec(name)]


def _tiers(contract: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield each container and its layers, the highest first; a layer has one or more packages."""
    options = _options(contract)
    for container in options["containers"]:
        yield (
            container,
            [[f"{container}.{name.strip()}" for name in layer.split("|")] for layer in options["layers"]],
        )


def _upward(tiers: Sequence[Sequence[str]]) -> Iterator[Import]:
    """Yield an import of each package from each lower layer, and from its siblings in the same layer."""
    for number, layer in enumerate(tiers):
        lower = [package for each in tiers[number:] for package in each]
        for package in layer:
            yield from ((_innermost(other), _innermost(package)) for other in lower if other != package)


@pytest.mark.parametrize("contract", _of_type("layers"))
def test_every_import_of_a_higher_layer_is_found(contract: str) -> None:
    for container, tiers in _tiers(contract):
        for importer, imported in _upward(tiers):
            assert not check(contract, (importer, imported)).kept, f"{importer} imports {imported}"
        packages = {package for layer in tiers for package in layer}
        inside = {child for child in _code().find_children(container) if _code().find_children(child)}
        assert inside <= packages, f"{container}: no layer"


def _cycles(package: str) -> Iterator[Import]:
    """Yield imports that make two children of a package import each other."""
    one, other = sorted(_code().find_children(package))[:2]
    yield _innermost(one), _innermost(other)
    yield _innermost(other), _innermost(one)


@pytest.mark.parametrize("contract", _of_type("acyclic_siblings"))
def test_a_cycle_is_found_in_every_package(contract: str) -> None:
    ancestors = _options(contract)["ancestors"]
    packages = {
        package
        for ancestor in ancestors
        for package in (ancestor, *_code().find_descendants(ancestor))
        if len(_code().find_children(package)) > 1
    }
    cycles = [each for package in packages for each in _cycles(package)]
    assert packages - check(contract, *cycles).metadata["cycle_breakers_by_package"].keys() == set()


def test_no_type_of_contract_is_left_out() -> None:
    assert {options["type"] for options in _OPTIONS.contracts_options} == set(_CLASSES)
