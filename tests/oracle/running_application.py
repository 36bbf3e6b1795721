"""Run real Kafka Streams applications on a real broker with the program in `java/`."""

import json
import os
import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from tests.oracle.kafka_streams import OF_THE_BROKER, built_program
from tests.quick_java import QUICK_JAVA

_MAIN = "headwater.oracle.Application"
_SECONDS = 90


@contextmanager
def running_application(
    bootstrap_servers: str, document: Mapping[str, Any], *others: Mapping[str, Any], memory: str = "256m"
) -> Iterator[None]:
    """Run the applications of documents in one JVM; they are in the state RUNNING inside the context."""
    documents = (document, *others)
    java, folder = built_program(OF_THE_BROKER)
    class_path = os.pathsep.join((str(folder / "classes"), str(folder / "jars" / "*")))
    command = [
        str(java),
        f"-Xmx{memory}",
        *QUICK_JAVA,
        "-cp",
        class_path,
        _MAIN,
    ]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    states: queue.Queue[str] = queue.Queue()
    listener = threading.Thread(target=_listen, args=(process.stdout, states), daemon=True)
    listener.start()
    try:
        process.stdin.write(
            json.dumps({"bootstrapServers": bootstrap_servers, "documents": documents}) + "\n"
        )
        process.stdin.flush()
        _await_running(states, {each["application"]["id"] for each in documents})
        yield
    finally:
        process.stdin.close()
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        listener.join()
        process.stdout.close()


def _listen(output: IO[str], states: "queue.Queue[str]") -> None:
    for line in output:
        states.put(line.strip())
    states.put("ENDED")


def _await_running(states: "queue.Queue[str]", waiting: set[str]) -> None:
    while waiting:
        id_, _, state = states.get(timeout=_SECONDS).rpartition(" ")
        assert state not in ("ENDED", "ERROR"), f"the application does not run: {id_} {state}"
        if state == "RUNNING":
            waiting.discard(id_)
