"""Ownership of input partitions by processors (KIP-287)."""
