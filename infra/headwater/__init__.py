"""Headwater: internal topics of stream-processing topologies, declared. ARCHITECTURE.md has the picture."""
