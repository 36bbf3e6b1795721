"""An unchanged application with standby tasks has the same assignment with and without the library."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from headwater.model.versions import SUPPORTED
from headwater.toolchain.broker.local import LocalBroker
from tests.streams_library.application import TestedApplication
from tests.streams_library.applications import Applications, jvm

pytestmark = [pytest.mark.broker, pytest.mark.oracle, pytest.mark.soak]

_PARTITIONS = 4
_INSTANCES = ("a", "b")
_WITHOUT = {"default_client_supplier": ""}
_WITH = {"internal_topics_setup": "manual", "partition_autoscaling_enabled": "true"}
_COMMON = {
    "num_standby_replicas": "1",
    # An instance without the state is not caught up, so the assignor has to know the lags.
    "acceptable_recovery_lag": "0",
    "max_warmup_replicas": "1",
}
Tasks = Mapping[str, Mapping[str, str]]


@pytest.mark.parametrize("version", [str(version) for version in SUPPORTED])
def test_assignments_are_equal(
    kafka: LocalBroker, unique: Callable[[str], str], tmp_path: Path, version: str
) -> None:
    with jvm(version, tmp_path / "without") as java:
        without = _assignments(java, tmp_path / "without", kafka, unique("shop"), _WITHOUT)
    with jvm(version, tmp_path / "with") as java:
        with_library = _assignments(java, tmp_path / "with", kafka, unique("shop"), _WITH)
    assert with_library == without
    joined, restarted = without
    # The instance without the state has no active task with state yet: the lags are known.
    assert not [task for task, kind in joined["b"].items() if task.startswith("1_") and kind == "active"]
    assert sorted(restarted) == ["a", "b"]


def _assignments(
    java: Applications, folder: Path, kafka: LocalBroker, id_: str, config: Mapping[str, str]
) -> tuple[Tasks, Tasks]:
    """Return the tasks after a new instance has joined one with state, and after both were restarted."""
    application = TestedApplication(id_, kafka.bootstrap_servers)
    for topic in (application.source, application.sink):
        application.create(topic, _PARTITIONS)
    configs = application.configs(**_COMMON, **config)
    java.initialize("setup", application.topology, application.configs(internal_topics_setup="manual"))
    for number, name in enumerate(_INSTANCES):
        _identify(folder / name / id_, number)
    java.start("a", application.topology, configs)
    java.await_tasks("a", 2 * _PARTITIONS)
    application.produce(300)
    application.await_true(lambda: sum(application.totals().values()) == 300, "all records are counted")
    java.start("b", application.topology, configs)
    joined = _await_assignment(java, application)
    for name in _INSTANCES:
        java.close(name)
    for name in _INSTANCES:
        java.start(name, application.topology, configs)
    return joined, _await_assignment(java, application)


def _identify(folder: Path, number: int) -> None:
    """Give an instance the id of its process, in whose order tasks are assigned."""
    folder.mkdir(parents=True)
    id_ = f"00000000-0000-0000-0000-00000000000{number}"
    (folder / "kafka-streams-process-metadata").write_text(f'{{"processId": "{id_}"}}', encoding="utf-8")


def _await_assignment(java: Applications, application: TestedApplication) -> Tasks:
    """Wait until each task is active, and each task with state is a standby task of the other instance."""
    found: dict[str, Mapping[str, str]] = {}

    def is_complete() -> bool:
        found.update({name: java.ask(name, "tasks") for name in _INSTANCES})
        kinds = [kind for tasks in found.values() for kind in tasks.values()]
        return (kinds.count("active"), kinds.count("standby")) == (2 * _PARTITIONS, _PARTITIONS)

    application.await_true(is_complete, "all tasks are assigned", 60)
    return found
