"""Compiles topology documents to internal topics with exact names, partition counts and configs.

`compile_document` and `compile_documents` run all passes; `build_nodes` returns the node topology alone.
"""

from headwater.compiler.follow import compile_document, compile_documents
from headwater.compiler.pipeline import PASSES, build_nodes
from headwater.compiler.streams_config import StreamsConfig

__all__ = ["PASSES", "StreamsConfig", "build_nodes", "compile_document", "compile_documents"]
