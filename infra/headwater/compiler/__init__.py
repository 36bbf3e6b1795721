"""Compiles topology documents to internal topics with exact names, partition counts and configs.

`compile_document` and `compile_documents` run all passes; `build_nodes` returns the node topology alone.
"""

from typing import TYPE_CHECKING

from headwater import names_on_use

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

if not TYPE_CHECKING:  # workers on Spark use single modules of this package
    __getattr__, __dir__ = names_on_use(__name__, _MODULES)
