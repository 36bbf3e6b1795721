"""Topologies that Kafka Streams before 3.7 built: recorded texts and internal topics."""
