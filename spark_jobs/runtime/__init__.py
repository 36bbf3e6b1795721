"""Topologies run on Spark: programs of sub-topologies, the engine that executes them, the queries."""
