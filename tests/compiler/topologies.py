"""Topologies without an application whose counts depend on the protocol, or their topics on the version."""

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


SUPPLIED_JOIN_STORES = """
topology:
  - stream: {topic: right, as: right}
  - stream: left
  - join:
      with: right
      window: {before: 5s, after: 5s}
      thisStore: {name: mine, windowSize: 10s, retention: 10s}
      otherStore: {name: others, windowSize: 10s, retention: 10s}
"""
KEY_CHANGE_IN_THE_FIRST_INPUT = """
topology:
  - stream: {topic: plain, as: plain}
  - stream: keyed
  - selectKey: {key: value.id}
  - filter: {where: value.ok, as: keyed}
  - merge: {from: keyed, with: plain, as: merged}
  - groupByKey: {from: merged}
  - count: {materialized: counts}
  - groupByKey: {from: merged}
  - reduce: {add: value, materialized: latest}
"""
MERGES_REPARTITIONS = "topology.optimization: merge.repartition.topics"
"""The config with which `KEY_CHANGE_IN_THE_FIRST_INPUT` differs."""
UNNAMED_GLOBAL_STORE = """
topology:
  - globalTable: {topic: rates, materialized: {}}
"""
STORE_ADDED_AGAIN = """
topology:
  - stream: orders
  - processValues: {stores: [{name: seen, kind: keyValue, shared: true}]}
  - addStateStore: {name: seen, kind: keyValue, shared: true}
"""
