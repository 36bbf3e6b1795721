"""The rules of the planner, by topic. Each yields problems; none knows another.

`APPLICATION_RULES` check one active application, `RUN_RULES` the whole run; `twice_managed` checks the plan.
Problems are reported in their order.
"""

from collections.abc import Callable, Iterable

from headwater.model.problems import Problem
from headwater.planner.policies import check_run
from headwater.planner.rules import broker_defaults, cluster, counts, ownership, setup, topics, unavailable
from headwater.planner.run import ActiveApplication, Run

ApplicationRule = Callable[[ActiveApplication], Iterable[Problem]]
RunRule = Callable[[Run], Iterable[Problem]]

APPLICATION_RULES: tuple[ApplicationRule, ...] = (
    topics.missing_source,
    cluster.group_protocol,
    setup.already_set_up,
    setup.incomplete_setup,
    topics.lost_topics,
    topics.replaced_topics,
    setup.renumbered_topics,
    setup.kafka_streams_changed,
    setup.version_not_named,
    counts.source_topics_expanded,
    counts.over_partitioned,
    counts.processors_at_first_setup,
    counts.processors_and_partitions,
    counts.unsafe_expansion,
    topics.misconfigured_topics,
    topics.too_few_replicas,
    unavailable.unavailable_topics,
    setup.reinitialize_stays_on,
    setup.unsafe_expansion_stays_on,
    cluster.timed_out,
    cluster.acls_incomplete,
    cluster.excess_permissions,
)

RUN_RULES: tuple[RunRule, ...] = (
    cluster.wrong_cluster,
    setup.application_removed,
    setup.retired_without_record,
    ownership.managed_elsewhere,
    ownership.ownership_records,
    setup.id_overlap,
    cluster.group_active,
    topics.retired_topics,
    ownership.unproven_deletion,
    ownership.unproven_adoption,
    topics.removing_settings,
    broker_defaults.harmful_defaults,
    broker_defaults.harmful_settings,
    check_run,
    cluster.no_authorizer,
    topics.missing_sink,
    topics.similar_new_names,
)

OTHER_CLUSTER_RULES: tuple[RunRule, ...] = (cluster.wrong_cluster, setup.application_removed, check_run)
"""The rules of a run on another cluster than the cluster of the stack.

The others compare the cluster with the records or the documents of the stack. On another cluster they would
report topics as lost, and advise to change a cluster that has nothing to do with the stack.
"""
