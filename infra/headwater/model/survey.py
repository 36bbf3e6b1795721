"""What a cluster shows of applications without a document: consumer groups and internal topics."""

from collections.abc import Mapping

import attrs

from headwater.model.cluster import LiveTopic
from headwater.model.evidence import GroupFacts


@attrs.frozen
class Survey:
    """All topics and groups of a cluster; topics with names of internal topics have configs."""

    cluster_id: str
    topics: Mapping[str, LiveTopic]
    groups: Mapping[str, GroupFacts]
