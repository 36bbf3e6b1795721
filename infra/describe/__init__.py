"""Kafka Streams' `Topology#describe()` text, written byte for byte and read back."""

from infra.describe.read import read_description, read_descriptions
from infra.describe.write import write_description

__all__ = ["read_description", "read_descriptions", "write_description"]
