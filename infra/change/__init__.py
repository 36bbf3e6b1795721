"""Topics changed by the Kafka admin client, for whoever may: apply's repairs, the runtime's set-up.

Belongs here: doing what was decided, in batches, and telling what failed. Nothing here decides.
"""

from infra.change.topics import TopicChange, admin_client, change_topics, failures

__all__ = ["TopicChange", "admin_client", "change_topics", "failures"]
