"""Topologies run on Spark: programs of sub-topologies, the task engine that executes them, and the queries."""
