"""Edits since the last setup: documents compared with the setup records of a stack."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import InternalTopic
from headwater.model.problems import errors
from headwater.model.records import SetupRecord
from headwater.model.topology import Lifecycle
from headwater.model.versions import read_any_version
from headwater.planner.edits.observed import edit_of_names
from headwater.planner.edits.topologies import Topologies
from headwater.planner.edits.values import Edit


def find_edit_since_setup(
    records: Mapping[str, SetupRecord],
    after: Topologies,
    *,
    snapshot: ClusterSnapshot | None = None,
    assumed: AbstractSet[str] = frozenset(),
) -> Edit:
    """Return what changed since the last `pulumi up`; raises nothing.

    A record has the names and counts of the topics that were set up, not their formats. If counts of source
    topics are only `assumed`, counts are not compared.
    """
    active = {
        id_: topology
        for id_, topology in after.of.items()
        if topology.application.lifecycle is Lifecycle.ACTIVE
    }
    problems = tuple(
        problem.located(application=id_, location=topology.application.at)
        for id_, topology in active.items()
        for problem in errors(topology.compiled.problems)
    )
    refused = {problem.application for problem in problems}
    applications, continued = [], set[str]()
    for id_, topology in active.items():
        record = records.get(id_) or records.get(topology.application.renamed_from or "")
        if record is None:
            continue
        continued |= {id_, record.application_id}
        if id_ in refused:
            continue
        applications.append(
            edit_of_names(
                topology.compiled,
                _recorded_counts(record, topology.topics if assumed else {}),
                {name: record.origins.get(name, "") for name in record.generated},
                snapshot=snapshot,
                former_id=None if record.application_id == id_ else record.application_id,
                before_version=read_any_version(record.kafka_streams) if record.kafka_streams else None,
            )
        )
    return Edit(
        applications=tuple(applications),
        added=tuple(sorted(active.keys() - continued - refused)),
        removed=tuple(sorted(records.keys() - after.of.keys() - continued)),
        problems=problems,
        assumed=tuple(sorted(assumed)),
        cluster_id=snapshot.cluster_id if snapshot is not None else None,
    )


def _recorded_counts(record: SetupRecord, uncompared: Mapping[str, InternalTopic]) -> Mapping[str, int]:
    """Return internal topic → partition count at the last setup; `uncompared` topics have their new count."""
    return {
        name: uncompared[name].partitions if name in uncompared else topic.partitions
        for name, topic in record.topics.items()
        if not topic.is_sink and not topic.is_retired
    }
