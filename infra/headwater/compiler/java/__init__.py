"""Java's regular expressions, hash codes and collections, as far as they decide results of Kafka Streams.

Partition counts and `describe()` texts depend on the iteration order of Java's collections, and pattern
sources are `java.util.regex` patterns. docs/adr/0007-model-java-orders-and-patterns.md says why.
"""
