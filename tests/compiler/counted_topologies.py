"""Topologies whose partition counts depend on the protocol, without an application."""

MERGED_REPARTITION = """
topology:
  - stream: {topic: a}
  - selectKey: {key: x}
  - repartition: {name: first, as: first}
  - stream: {topic: b, as: b}
  - merge: {from: first, with: b}
  - groupBy: {name: second}
  - count: {materialized: counts}
"""
COGROUP = """
topology:
  - stream: {topic: a}
  - groupBy: {name: one, as: one}
  - stream: {topic: b}
  - groupBy: {name: two, as: two}
  - cogroup: {from: one, as: both}
  - cogroup: {from: both, with: two}
  - aggregate: {materialized: c}
"""
UNRELATED_COUNTS = """
topology:
  - stream: {topic: a}
  - repartition: {name: r1, partitions: 3}
  - to: {topic: o}
  - stream: {topic: b}
  - repartition: {name: r2, partitions: 4}
  - to: {topic: p}
  - stream: {topic: c}
  - selectKey: {key: x, as: c}
  - stream: {topic: d}
  - selectKey: {key: x, as: d}
  - join: {from: c, with: d, window: {difference: 1h}, name: j, storeName: s}
"""
EQUAL_COUNTS = UNRELATED_COUNTS.replace("partitions: 4", "partitions: 3")
