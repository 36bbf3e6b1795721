"""The rules of the planner, one per file. Each yields problems; none knows another.

`APPLICATION_RULES` check one active application, `RUN_RULES` the whole run; `twice_managed` checks the plan.
Problems are reported in their order.
"""

from collections.abc import Callable, Iterable

from infra.model.problems import Problem
from infra.planner.application import ActiveApplication
from infra.planner.policies import check_run
from infra.planner.rules.acls_incomplete import acls_incomplete
from infra.planner.rules.already_set_up import already_set_up
from infra.planner.rules.application_removed import application_removed
from infra.planner.rules.group_active import group_active
from infra.planner.rules.group_protocol import group_protocol
from infra.planner.rules.id_overlap import id_overlap
from infra.planner.rules.incomplete_setup import incomplete_setup
from infra.planner.rules.kafka_streams_changed import kafka_streams_changed
from infra.planner.rules.lost_topics import lost_topics
from infra.planner.rules.managed_elsewhere import managed_elsewhere
from infra.planner.rules.misconfigured import misconfigured
from infra.planner.rules.missing_sink import missing_sink
from infra.planner.rules.missing_source import missing_source
from infra.planner.rules.no_authorizer import no_authorizer
from infra.planner.rules.over_partitioned import over_partitioned
from infra.planner.rules.ownership_records import ownership_records
from infra.planner.rules.processor_count import processors_and_partitions, processors_at_first_setup
from infra.planner.rules.reinitialize_stays_on import reinitialize_stays_on
from infra.planner.rules.removing_settings import removing_settings
from infra.planner.rules.renumbered import renumbered
from infra.planner.rules.replaced_topics import replaced_topics
from infra.planner.rules.replication import replication
from infra.planner.rules.retired_topics import retired_topics
from infra.planner.rules.source_topics_expanded import source_topics_expanded
from infra.planner.rules.timeout import timeout
from infra.planner.rules.unavailable import unavailable
from infra.planner.rules.unproven_adoption import unproven_adoption
from infra.planner.rules.unproven_deletion import unproven_deletion
from infra.planner.rules.unsafe_expansion import unsafe_expansion
from infra.planner.rules.version_not_named import version_not_named
from infra.planner.rules.wrong_cluster import wrong_cluster
from infra.planner.run import Run

ApplicationRule = Callable[[ActiveApplication], Iterable[Problem]]
RunRule = Callable[[Run], Iterable[Problem]]

APPLICATION_RULES: tuple[ApplicationRule, ...] = (
    missing_source,
    group_protocol,
    already_set_up,
    incomplete_setup,
    lost_topics,
    replaced_topics,
    renumbered,
    kafka_streams_changed,
    version_not_named,
    source_topics_expanded,
    over_partitioned,
    processors_at_first_setup,
    processors_and_partitions,
    unsafe_expansion,
    misconfigured,
    replication,
    unavailable,
    reinitialize_stays_on,
    timeout,
    acls_incomplete,
)

RUN_RULES: tuple[RunRule, ...] = (
    wrong_cluster,
    application_removed,
    managed_elsewhere,
    ownership_records,
    id_overlap,
    group_active,
    retired_topics,
    unproven_deletion,
    unproven_adoption,
    removing_settings,
    check_run,
    no_authorizer,
    missing_sink,
)

OTHER_CLUSTER_RULES: tuple[RunRule, ...] = (wrong_cluster, application_removed, check_run)
"""The rules of a run on another cluster than that of the stack.

The others compare the cluster with the records or the documents of the stack. On another cluster they would
report topics as lost, and advise to change a cluster that has nothing to do with the stack.
"""
