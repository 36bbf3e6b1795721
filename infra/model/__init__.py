"""PURE. The vocabulary of every package: topology, topics, cluster snapshot, setup record, problems.

Values only: frozen attrs classes over tuples and read-only mappings. Nothing here decides, reads or prints.
"""
