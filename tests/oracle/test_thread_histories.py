"""The recorded histories of stream threads are those of the real Kafka Streams, on a real broker."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # public, but not exported explicitly

from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from tests.oracle.kafka_streams import OF_THE_BROKER, built_program
from tests.oracle.thread_histories import FILE, PARTITIONS, contents, text
from tests.quick_java import QUICK_PROGRAM

pytestmark = [pytest.mark.broker, pytest.mark.oracle, pytest.mark.slow]

_MAIN = "headwater.oracle.ThreadHistories"
_SECONDS = 60
_SHORT = {
    "before-the-start",
    "last-thread-removed",
    "added-during-a-rebalance",
    "removed-with-a-timeout-of-zero",
    "failure-without-a-handler",
    "failure-ends-the-client",
    "closed",
}
"""The other histories take seven minutes."""


def _parameters() -> Iterator[ParameterSet]:
    for history in contents():
        marks = () if history["name"] in _SHORT else (pytest.mark.soak,)
        yield pytest.param(history, id=history["name"], marks=marks)


@pytest.fixture(scope="module")
def run_history(kafka: LocalBroker) -> "Iterator[Callable[[Mapping[str, Any]], list[dict[str, Any]]]]":
    """Start a JVM. Return a function that sends a request and returns the outcomes of its operations."""
    java, folder = built_program(OF_THE_BROKER)
    class_path = os.pathsep.join((str(folder / "classes"), str(folder / "jars" / "*")))
    command = [str(java), "-Xmx256m", *QUICK_PROGRAM, "-cp", class_path, _MAIN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run(request: Mapping[str, Any]) -> list[dict[str, Any]]:
            assert process.stdin is not None
            assert process.stdout is not None
            print(
                json.dumps({**request, "bootstrapServers": kafka.bootstrap_servers}),
                file=process.stdin,
                flush=True,
            )
            response = process.stdout.readline()
            assert response, "the program has ended"
            outcomes: list[dict[str, Any]] | dict[str, str] = json.loads(response)
            assert isinstance(outcomes, list), outcomes
            return outcomes

        yield run
        process.stdin.close()
        try:
            process.wait(_SECONDS)
        finally:
            process.kill()


@pytest.mark.parametrize("history", tuple(_parameters()))
def test_the_real_class_does_what_is_recorded(
    history: Mapping[str, Any],
    kafka: LocalBroker,
    unique: Callable[[str], str],
    run_history: Callable[[Mapping[str, Any]], list[dict[str, Any]]],
) -> None:
    request = _request(history, unique)
    topics = [NewTopic(request[key], PARTITIONS, 1) for key in ("topic", "globalTopic") if request[key]]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for name, created in admin.create_topics(topics).items():
        created.result(_SECONDS)
        assert until(partial(_is_known, admin, name), _SECONDS), "without it, the application would end"
    outcomes = run_history(request)
    steps = [{"do": step["do"], **outcome} for step, outcome in zip(history["steps"], outcomes, strict=True)]
    if "UPDATE_GOLDEN" in os.environ:
        changed = [{**one, "steps": steps} if one["name"] == history["name"] else one for one in contents()]
        FILE.write_text(text(changed), encoding="utf-8")
        return
    assert steps == history["steps"]


def _is_known(admin: AdminClient, topic: str) -> bool:
    return topic in admin.list_topics(timeout=_SECONDS).topics


def _request(history: Mapping[str, Any], unique: Callable[[str], str]) -> dict[str, Any]:
    return {
        "applicationId": unique("history"),
        "topic": unique("history-input"),
        "globalTopic": unique("history-global") if history.get("globalTable") else None,
        "partitions": PARTITIONS,
        "threads": history["threads"],
        "clients": history.get("clients", 1),
        "handler": history.get("handler"),
        "cacheBytes": history.get("cacheBytes", 0),
        "operations": [step["do"] for step in history["steps"]],
    }
