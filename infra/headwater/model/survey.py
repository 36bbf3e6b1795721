"""What a cluster shows of applications without a document: consumer groups and internal topics."""

from collections.abc import Mapping

import attrs

from headwater.model.cluster import LiveTopic
from headwater.model.evidence import GroupFacts
from headwater.model.streams_groups import StreamsGroup


@attrs.frozen
class Survey:
    """All topics and groups of a cluster; topics with names of internal topics have configs."""

    cluster_id: str
    topics: Mapping[str, LiveTopic]
    groups: Mapping[str, GroupFacts]
    streams_groups: Mapping[str, StreamsGroup] = attrs.field(factory=dict)
    """Those of the streams protocol that the user may describe, with their topologies."""
