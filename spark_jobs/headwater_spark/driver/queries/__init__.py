"""Streaming queries of Spark, one for each sub-topology: their batches, and whether they make progress."""
