"""The configs of Kafka Streams: which exist in a version, what their values are, and what is refused.

`kafka_configs.json` is generated from Kafka's `ConfigDef`s (`tests/oracle/config_table.py`).
"""
