"""Move the state of an application to more or fewer processors (KIP-287)."""
