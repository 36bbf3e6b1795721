"""Which partition a record goes to: Kafka's default, static partitioners (KIP-878), linear hashing."""
