"""Reads and writes texts of Kafka Streams' `Topology#describe()`; written texts are byte for byte equal."""

from headwater.describe.read import read_description, read_descriptions
from headwater.describe.write import write_description

__all__ = ["read_description", "read_descriptions", "write_description"]
