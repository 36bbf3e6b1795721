"""What an internal topic is for; users see these words in documents and reports."""

from enum import Enum


class TopicKind(Enum):
    REPARTITION = "repartition"
    CHANGELOG = "changelog"
    FK_SUBSCRIPTION = "fk-subscription"
