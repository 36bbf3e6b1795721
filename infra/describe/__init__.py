"""Reads and writes texts of Kafka Streams' `Topology#describe()`; written texts are byte for byte equal."""

from infra.describe.read import read_description, read_descriptions
from infra.describe.write import write_description

__all__ = ["read_description", "read_descriptions", "write_description"]
