"""Topology documents: found, read safely, checked against the schema and each other, typed.

All that can be wrong with a document is collected as problems with file, line, column and JSON pointer.
"""

from infra.spec.documents import Documents, load_documents, load_text, parse_document

__all__ = ["Documents", "load_documents", "load_text", "parse_document"]
