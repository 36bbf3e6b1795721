"""Which worker of a test run gets which tests, and when.

Long ones first, Spark's tests in two sessions, those of all versions of Kafka Streams in one worker, and at
each time some tests that wait and some that compute.
"""

from typing import Any

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # xdist ships no types

# A session takes a gigabyte and ten seconds to start, so these modules share two of them.
_SPARK_SESSIONS = (
    (
        "tests/runtime/spark/test_recorded_cases.py",
        "tests/runtime/spark/test_random_topologies.py",  # on the same broker, which deletes no records
        "tests/runtime/spark/test_processors.py",
        "tests/runtime/spark/test_processor_expansion.py",
        "tests/runtime/spark/test_processor_commands.py",
        "tests/runtime/spark/test_foreign_key_expansion.py",
        "tests/runtime/spark/test_stale_client.py",
        "tests/runtime/spark/test_user_classes.py",
        "tests/runtime/engine/expressions/test_against_spark.py",
        "tests/runtime/engine/expressions/test_back_ends.py",
    ),
    (
        "tests/runtime/spark/test_kip_878_test_plan.py",
        "tests/runtime/spark/test_topics_while_running.py",
        "tests/runtime/spark/test_application.py",
        "tests/runtime/spark/test_back_ends.py",
        "tests/runtime/spark/test_benchmark_sides.py",
        "tests/runtime/spark/test_lost_files.py",
        "tests/runtime/spark/test_repartition_rounds.py",
        "tests/runtime/spark/test_input_order.py",
        "tests/runtime/spark/test_order_of_kafka_streams.py",
        "tests/runtime/spark/test_stream_threads.py",
        "tests/runtime/spark/test_task_function.py",
        "tests/runtime/spark/test_incomplete_input.py",
        "tests/runtime/spark/test_idle_queries.py",
        "tests/runtime/spark/test_worker_daemon.py",
    ),
)
# A JVM for each version takes seconds to start.
_VERSIONS = (
    "tests/oracle/test_fuzz.py",
    "tests/oracle/test_differences.py",
    "tests/oracle/test_neighbors.py",
    "tests/oracle/test_topic_configs.py",
    "tests/oracle/test_stores.py",
    "tests/oracle/test_exported_documents.py",
    "tests/oracle/test_kafka_programs.py",
    "tests/oracle/test_config_support.py",
    "tests/runtime/engine/fuzzing/test_rounds.py",
    "tests/oracle/test_configs.py",
    "tests/runtime/engine/fuzzing/test_versions.py",
)
_ALL_VERSIONS = "versions of Kafka Streams"
_GROUP_OF = {
    **{path: f"Spark session {n}" for n, paths in enumerate(_SPARK_SESSIONS) for path in paths},
    **dict.fromkeys(_VERSIONS, _ALL_VERSIONS),
}

# Each of their tests takes long and shares nothing with the others, so any worker may run it.
_SEPARATE_TESTS = (
    "tests/runtime/spark/test_faults.py",
    "tests/runtime/spark/test_expansion_kills.py",
    "tests/runtime/spark/test_several_executors.py",
    "tests/runtime/spark/test_processor_faults.py",
    "tests/runtime/spark/test_stopped_client.py",
    "tests/runtime/spark/test_two_clients.py",
    "tests/runtime/spark/test_faults_with_records_held_back.py",
    "tests/runtime/spark/test_thread_faults.py",
    "tests/runtime/spark/test_topic_faults.py",
    "tests/runtime/spark/test_failure_answers.py",
    "tests/runtime/spark/test_killed_move_commands.py",
    "tests/wheel/test_new_repository.py",
    "tests/runtime/spark/test_as_programs.py",
    "tests/runtime/spark/test_process_end.py",
    "tests/runtime/driver/test_expansions_on_a_broker.py",
    "tests/runtime/driver/test_expansions_while_brokers_fail.py",
    "tests/runtime/driver/test_moves_on_a_broker.py",
    "tests/runtime/reshard/test_kafka_streams.py",
    "tests/runtime/reshard/test_on_a_broker.py",
    "tests/runtime/reshard/test_series.py",
)

_COMPUTING = (
    *(f"Spark session {number}" for number in range(len(_SPARK_SESSIONS))),
    *(
        path
        for path in _SEPARATE_TESTS
        if not path.startswith(("tests/runtime/driver/", "tests/runtime/reshard/"))
    ),
    "tests/runtime/spark/test_health.py",
    "tests/workflows/test_steps.py",
    "tests/workflows/test_hostile_pull_requests.py",
    _ALL_VERSIONS,
    "tests/cli/",
    "tests/pulumi/",
    "tests/acls/test_stack.py",
    "tests/acls/test_runtime.py",
    "tests/documentation/test_tutorial.py",
    "tests/adoption/",
    "tests/toolchain/",
    "tests/deploy/test_alerts.py",
    "tests/runtime/spark/test_task_batches.py",
    "tests/runtime/spark/test_batches_held_back.py",
    "tests/drift/",
    "tests/advice/",
    "tests/oracle/",
    "tests/workflows/test_checks.py",
    "tests/compiler/",
    "tests/runtime/engine/",
    "tests/runtime/driver/test_moved_foreign_keys.py",
)
"""Scopes that keep processors busy for long, the longest first."""
_WAITING = (
    "tests/runtime/driver/test_expansions_while_brokers_fail.py",
    "tests/runtime/driver/test_expansions_on_a_broker.py",
    "tests/runtime/reshard/test_kafka_streams.py",
    "tests/runtime/reshard/test_on_a_broker.py",
    "tests/runtime/reshard/test_series.py",
    "tests/runtime/driver/test_moves_on_a_broker.py",
    "tests/runtime/driver/test_warm_up.py",
    "tests/runtime/driver/test_unreadable_cluster.py",
    "tests/runtime/driver/test_expanding_clients.py",
    "tests/oracle/test_thread_histories.py",
    "tests/control/",
    "tests/agent/",
    "tests/coordination/",
    "tests/observe/",
    "tests/doctor/",
    "tests/acls/",
    "tests/runtime/worker/test_several_hosts.py",
    "tests/runtime/worker/test_active_client.py",
    "tests/runtime/driver/test_active_client_on_a_broker.py",
    "tests/runtime/worker/test_refused_records.py",
    "tests/runtime/worker/test_transaction.py",
    "tests/runtime/worker/test_partition_follower.py",
    "tests/runtime/driver/test_offsets.py",
    "tests/runtime/driver/test_topics.py",
    "tests/streams_library/",
    "tests/change/",
    "tests/contract/",
    "tests/upgrade/test_command.py",
)
"""Scopes that mostly wait for brokers and timeouts, the longest first."""


class LongestFirst(LoadScopeScheduling):  # type: ignore[misc]  # its base is untyped
    """Assign whole modules, so that their fixtures are set up once, and single tests of long modules."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return nodeid if path in _SEPARATE_TESTS else _GROUP_OF.get(path, path)

    def _assign_work_unit(self, node: Any) -> None:  # noqa: ANN401 - xdist's WorkerController, untyped
        first, second = (_COMPUTING, _WAITING) if _is_even(node) else (_WAITING, _COMPUTING)
        longest = min(
            self.workqueue,
            key=lambda scope: (_rank(scope, (*first, *second)), -len(self.workqueue[scope])),
        )
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: Any) -> None:  # noqa: ANN401 - as above
        """Send the next scopes for the last test only: what waits behind a long test cannot be moved.

        A worker runs its last test when it knows the next one, so it gets tests until it has two. After a
        crash, the base class also queues the scopes that the worker had completed: without a test in them,
        another worker would wait forever.
        """
        for scope in [scope for scope, tests in self.workqueue.items() if all(tests.values())]:
            del self.workqueue[scope]
        while not node.shutting_down and self.workqueue and self._pending_of(self.assigned_work[node]) <= 1:
            self._assign_work_unit(node)
        if not self.workqueue:
            super()._reschedule(node)


def is_scheduled(path: str) -> bool:
    """Return whether the order of the tests of this module is defined here."""
    return path in _GROUP_OF or _rank(path, (*_COMPUTING, *_WAITING)) < len(_COMPUTING) + len(_WAITING)


def _is_even(node: Any) -> bool:  # noqa: ANN401 - as above
    """Return whether a worker begins with tests that compute: every second one."""
    return int(str(node.gateway.id).removeprefix("gw")) % 2 == 0


def _rank(scope: str, order: tuple[str, ...]) -> int:
    return next((rank for rank, start in enumerate(order) if scope.startswith(start)), len(order))
