"""Compiles topology documents: exact names, counts and configs of internal topics."""

from infra.compiler.follow import compile_document, compile_documents
from infra.compiler.pipeline import PASSES, build_nodes
from infra.compiler.streams_config import StreamsConfig

__all__ = ["PASSES", "StreamsConfig", "build_nodes", "compile_document", "compile_documents"]
