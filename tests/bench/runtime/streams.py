"""Kafka Streams in a JVM that is started once for all runs of a workload, as Spark's is."""

import json
import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.bench.runtime.programs import Committed
from tests.bench.runtime.workloads import PARTITIONS, Job
from tests.oracle.kafka_streams import OF_THE_BROKER, built_program

_SOURCE = Path(__file__).with_name("Peer.java")
_SECONDS = 300
_ENDED = "the JVM has ended"
_THROUGHPUT = {"commit.interval.ms": "1000"}
"""About the duration of our batches. The defaults are 30 s and, with exactly once, a slow 100 ms."""


class KafkaStreamsPeer:
    """Kafka Streams with one thread per partition; the other settings are its defaults."""

    name = "streams"
    title = "Kafka Streams"

    def __init__(self, servers: str, log: Path) -> None:
        self._servers = servers
        self._log = log
        self._answers: queue.Queue[str] = queue.Queue()

    def __enter__(self) -> Self:
        java, folder = built_program(OF_THE_BROKER)
        class_path = str(folder / "jars" / "*")
        command = [str(java), "-Xmx1g", "-Dfile.encoding=UTF-8", "-cp", class_path, str(_SOURCE)]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        self._listener = threading.Thread(
            target=_listen, args=(self._process.stdout, self._answers), daemon=True
        )
        self._listener.start()
        try:
            self._expect("ready")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    @contextmanager
    def running(self, job: Job, *, in_bulk: bool) -> Iterator[Committed]:
        config = {
            "application.id": job.id,
            "num.stream.threads": str(PARTITIONS),
            **(_THROUGHPUT if in_bulk else {}),
            **job.workload.config,
        }
        progress = Committed(self._servers, job, self.failure)
        chains = [chain.topics for chain in job.chains]
        try:
            with self.application(job.workload.operator, chains, config, job.workload.subtopologies):
                yield progress
        finally:
            progress.close()

    @contextmanager
    def application(
        self,
        operator: str,
        chains: Sequence[tuple[str, ...]],
        config: Mapping[str, str],
        subtopologies: int = 1,
    ) -> Iterator[None]:
        """Run an application inside the context; `chains` are the sources and the sink of each chain."""
        request = {
            "operator": operator,
            "subtopologies": subtopologies,
            "chains": chains,
            "config": {
                "bootstrap.servers": self._servers,
                # Without it, a close during a rebalance waits for the other thread's session, 45 s.
                "internal.leave.group.on.close": "true",
                **config,
            },
        }
        self._send(json.dumps(request))
        try:
            yield
        finally:
            self._send("")
            self._expect("closed")

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _expect(self, word: str) -> None:
        """Wait for an answer; failures before it belong to the same application."""
        answers = [self._answers.get(timeout=_SECONDS)]
        while answers[-1] not in (word, _ENDED):
            answers.append(self._answers.get(timeout=_SECONDS))
        if answers != [word]:
            raise RuntimeError(f"Kafka Streams: {', '.join(answers)}; see {self._log}")

    def failure(self) -> str | None:
        """Return what an application has reported that failed; None = nothing since the last call."""
        return None if self._answers.empty() else self._answers.get()


def _listen(output: IO[str], answers: "queue.Queue[str]") -> None:
    for line in output:
        answers.put(line.strip())
    answers.put(_ENDED)
