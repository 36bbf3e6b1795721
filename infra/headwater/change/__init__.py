"""Requests of the Kafka admin client that create and change topics, in batches; they decide nothing."""

from headwater.change.topics import (
    TopicChange,
    TopicTarget,
    admin_client,
    await_failures,
    change_topics,
    request_config_changes,
    request_new_partitions,
    request_new_topics,
)

__all__ = [
    "TopicChange",
    "TopicTarget",
    "admin_client",
    "await_failures",
    "change_topics",
    "request_config_changes",
    "request_new_partitions",
    "request_new_topics",
]
