"""Headwater: internal topics of stream-processing topologies, declared. ARCHITECTURE.md has the picture."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def names_on_use(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are imported on first use (PEP 562).

    `modules` is name → the module of `package` that has it. An import of the package alone, or of one of its
    modules, then does not import the others. Type checkers must not see the functions: they would accept
    every name.
    """

    def get_name(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get_name, list_names
