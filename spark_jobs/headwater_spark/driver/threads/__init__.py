"""Stream threads: who adds and removes them (KIP-663), and what happens after a failure of one (KIP-671)."""
