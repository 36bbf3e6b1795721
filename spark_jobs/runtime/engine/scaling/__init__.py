"""PURE. Who owns which input: partitions and processors by linear hashing, hand-overs as cuts (KIP-287)."""
