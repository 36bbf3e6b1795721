"""The rules of the planner, by topic. Each yields problems; none knows another.

`APPLICATION_RULES` check one active application, `RUN_RULES` the whole run; `twice_managed` checks the plan.
Problems are reported in their order.
"""

from collections.abc import Callable, Iterable

from headwater.model.problems import Problem
from headwater.planner.policies import check_run
from headwater.planner.rules.broker_defaults import harmful_defaults, harmful_settings
from headwater.planner.rules.cluster import (
    acls_incomplete,
    excess_permissions,
    group_active,
    group_protocol,
    no_authorizer,
    timeout,
    wrong_cluster,
)
from headwater.planner.rules.counts import (
    over_partitioned,
    processors_and_partitions,
    processors_at_first_setup,
    source_topics_expanded,
    unsafe_expansion,
)
from headwater.planner.rules.ownership import (
    managed_elsewhere,
    ownership_records,
    unproven_adoption,
    unproven_deletion,
)
from headwater.planner.rules.setup import (
    already_set_up,
    application_removed,
    id_overlap,
    incomplete_setup,
    kafka_streams_changed,
    reinitialize_stays_on,
    renumbered,
    unsafe_expansion_stays_on,
    version_not_named,
)
from headwater.planner.rules.topics import (
    lost_topics,
    misconfigured,
    missing_sink,
    missing_source,
    removing_settings,
    replaced_topics,
    replication,
    retired_topics,
    similar_new_names,
)
from headwater.planner.rules.unavailable import unavailable
from headwater.planner.run import ActiveApplication, Run

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
    unsafe_expansion_stays_on,
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
    harmful_defaults,
    harmful_settings,
    check_run,
    no_authorizer,
    missing_sink,
    similar_new_names,
)

OTHER_CLUSTER_RULES: tuple[RunRule, ...] = (wrong_cluster, application_removed, check_run)
"""The rules of a run on another cluster than the cluster of the stack.

The others compare the cluster with the records or the documents of the stack. On another cluster they would
report topics as lost, and advise to change a cluster that has nothing to do with the stack.
"""
