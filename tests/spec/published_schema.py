"""The published schema of documents."""

from headwater.spec.schema import document_schema

SCHEMA = document_schema()
