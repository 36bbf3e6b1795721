"""Add processors while an application runs (KIP-287): requests, the warm-up, the cut between two batches."""
