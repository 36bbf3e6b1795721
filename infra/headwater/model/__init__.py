"""The types that all packages share: topology, topics, cluster snapshot, setup record, problems.

Frozen attrs classes over tuples and read-only mappings, without logic, I/O or output.
"""
