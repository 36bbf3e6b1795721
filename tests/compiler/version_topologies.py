"""Topologies of which versions of Kafka Streams build different internal topics, without an application."""

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
