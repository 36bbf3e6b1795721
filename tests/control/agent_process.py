"""A real `headwater agent run` process."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from headwater.toolchain.broker.readiness import until
from tests.control.conftest import HttpClient

ROOT = Path(__file__).parents[2]
AGENT = (sys.executable, "-m", "headwater.cli", "agent")
SECONDS = 60


class AgentProcess:
    """One agent process and its log lines."""

    def __init__(
        self,
        client_id: str,
        documents: Path,
        servers: str,
        group: str,
        follow_up_ms: int,
        *,
        session_timeout_ms: int = 6_000,
    ) -> None:
        self.client_id = client_id
        self.process = subprocess.Popen(
            [
                *(
                    *AGENT,
                    "run",
                    str(documents),
                    "--bootstrap-server",
                    servers,
                    "--group",
                    group,
                ),
                *("--client-id", client_id, "--http", "127.0.0.1:0", "--log-format", "json"),
                *(
                    "--metadata-max-age-ms",
                    "300",
                    "--follow-up-ms",
                    str(follow_up_ms),
                    "--session-timeout-ms",
                    str(session_timeout_ms),
                ),
            ],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines: Queue[Mapping[str, Any]] = Queue()
        self._log: list[str] = []
        Thread(target=self._read, daemon=True).start()

    @cached_property
    def url(self) -> str:
        return str(self.await_line("agent started")["endpoint"])

    @property
    def endpoint(self) -> HttpClient:
        return HttpClient(self.url)

    def await_line(self, words: str) -> Mapping[str, Any]:
        """Return the next log line with this event."""
        try:
            while (line := self._lines.get(timeout=SECONDS))["event"] != words:
                pass
        except Empty:
            raise AssertionError(f"{self.client_id} did not log {words!r}:\n{''.join(self._log)}") from None
        return line

    def value(self, name: str, **labels: str) -> float | None:
        """Return the sum of the samples of /metrics with these labels; None if there are none."""
        found = [
            sample.value
            for sample in self.samples()
            if sample.name == name and labels.items() <= sample.labels.items()
        ]
        return sum(found) if found else None

    def samples(self) -> list[Sample]:
        """Return all samples of /metrics."""
        families = text_string_to_metric_families(self.endpoint.get("/metrics").text)
        return [sample for family in families for sample in family.samples]

    def await_value(self, expected: float, name: str, **labels: str) -> None:
        assert until(lambda: self.value(name, **labels) == expected, SECONDS), self.value(name, **labels)

    def application(self, id_: str) -> Mapping[str, Any]:
        applications = self.endpoint.get("/status").json["agent"]["applications"]
        return next((each for each in applications if each["id"] == id_), {})

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        try:
            return self.process.wait(SECONDS)
        finally:
            self.process.kill()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr:
            for line in self.process.stderr:
                self._log.append(line)
                if line.startswith("{") and line.endswith("\n"):  # a traceback and a cut line are not JSON
                    self._lines.put(json.loads(line))
