"""Read topology documents and policy files: find, check against their schema, build typed values.

All problems are collected, with file, line, column and JSON pointer.
"""

from headwater.spec.documents import Documents, load_documents, load_text, parse_document

__all__ = ["Documents", "load_documents", "load_text", "parse_document"]
