"""Compiles topology documents to internal topics with exact names, partition counts and configs.

`compile_document` and `compile_documents` run all passes; `build_nodes` returns the node topology alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.compiler.follow import compile_document, compile_documents
    from headwater.compiler.pipeline import build_nodes
    from headwater.compiler.streams_config import StreamsConfig

__all__ = ["StreamsConfig", "build_nodes", "compile_document", "compile_documents"]
_MODULES = {
    "StreamsConfig": "streams_config",
    "build_nodes": "pipeline",
    "compile_document": "follow",
    "compile_documents": "follow",
}


if not TYPE_CHECKING:  # type checkers would accept every name of a module with this function

    def __getattr__(name: str) -> object:
        """Import a function when it is first used: workers on Spark use single modules of this package."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return the names of the package, also names that were not used yet."""
    return sorted({*globals(), *__all__})
