"""Headwater: internal topics of stream-processing topologies, declared. See ARCHITECTURE.md for the picture."""
