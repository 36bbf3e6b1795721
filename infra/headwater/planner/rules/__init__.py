"""The rules of the planner, one per file. Each yields problems; none knows another.

`APPLICATION_RULES` check one active application, `RUN_RULES` the whole run; `twice_managed` checks the plan.
Problems are reported in their order.
"""

from collections.abc import Callable, Iterable

from headwater.model.problems import Problem
from headwater.planner.application import ActiveApplication
from headwater.planner.policies import check_run
from headwater.planner.rules.acls_incomplete import acls_incomplete
from headwater.planner.rules.already_set_up import already_set_up
from headwater.planner.rules.application_removed import application_removed
from headwater.planner.rules.excess_permissions import excess_permissions
from headwater.planner.rules.group_active import group_active
from headwater.planner.rules.group_protocol import group_protocol
from headwater.planner.rules.id_overlap import id_overlap
from headwater.planner.rules.incomplete_setup import incomplete_setup
from headwater.planner.rules.kafka_streams_changed import kafka_streams_changed
from headwater.planner.rules.lost_topics import lost_topics
from headwater.planner.rules.managed_elsewhere import managed_elsewhere
from headwater.planner.rules.misconfigured import misconfigured
from headwater.planner.rules.missing_sink import missing_sink
from headwater.planner.rules.missing_source import missing_source
from headwater.planner.rules.no_authorizer import no_authorizer
from headwater.planner.rules.over_partitioned import over_partitioned
from headwater.planner.rules.ownership_records import ownership_records
from headwater.planner.rules.processor_count import processors_and_partitions, processors_at_first_setup
from headwater.planner.rules.reinitialize_stays_on import reinitialize_stays_on
from headwater.planner.rules.removing_settings import removing_settings
from headwater.planner.rules.renumbered import renumbered
from headwater.planner.rules.replaced_topics import replaced_topics
from headwater.planner.rules.replication import replication
from headwater.planner.rules.retired_topics import retired_topics
from headwater.planner.rules.source_topics_expanded import source_topics_expanded
from headwater.planner.rules.timeout import timeout
from headwater.planner.rules.unavailable import unavailable
from headwater.planner.rules.unproven_adoption import unproven_adoption
from headwater.planner.rules.unproven_deletion import unproven_deletion
from headwater.planner.rules.unsafe_expansion import unsafe_expansion
from headwater.planner.rules.version_not_named import version_not_named
from headwater.planner.rules.wrong_cluster import wrong_cluster
from headwater.planner.run import Run

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
    excess_permissions,
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
