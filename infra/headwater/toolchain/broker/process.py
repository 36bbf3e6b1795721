"""Start, stop, pause and kill one broker process."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs

from headwater.toolchain.broker.launch import (
    Settings,
    failure_lines,
    format_storage,
    launch_broker,
    let_start,
    log_file,
    random_cluster_id,
    run_tool,
    stored_cluster_id,
    write_files,
)
from headwater.toolchain.broker.readiness import HOST, free_ports, is_free, is_serving, until
from headwater.toolchain.cache import Cache
from headwater.toolchain.commands import Progress, ToolchainError
from headwater.toolchain.kafka import CLASS_DATA_FILE, KafkaDistribution, class_data_entry
from headwater.toolchain.sessions import Guard

_START_SECONDS = 60
_STOP_SECONDS = 20
_ATTEMPTS = 3
_PORT_TAKEN = "Address already in use"


class Broker:
    """A broker with its data and log in `folder`.

    `port` is the port of the PLAINTEXT listener. The other ports, and this one if it is None or 0, are free
    ones that restarts keep. As a context manager it starts the broker and always stops it.
    """

    def __init__(
        self,
        distribution: KafkaDistribution,
        folder: Path,
        settings: Settings | None = None,
        *,
        port: int | None = None,
    ) -> None:
        self._distribution = distribution
        self.folder = folder
        self.settings = settings or Settings()
        self.log = log_file(folder)
        self.cluster_id = stored_cluster_id(folder) or random_cluster_id()
        self._chosen_port = port
        self._ports: dict[str, int] = {}
        self._was_ready = False
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None

    @property
    def pid(self) -> int:
        return self._running_process().pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def bootstrap_servers(self) -> str:
        return self.address("PLAINTEXT")

    def address(self, protocol: str) -> str:
        """Return `host:port` of the listener for PLAINTEXT, SASL_PLAINTEXT, SSL or SASL_SSL."""
        return f"{HOST}:{self._ports[protocol]}"

    def start(self, inherited: tuple[int, ...] = ()) -> None:
        """Start the broker and wait until it can be used; raises `ToolchainError` with the reason.

        The broker keeps the `inherited` files open, and ends with this process unless it is released.
        """
        if self.is_running:
            return
        if self._chosen_port and not is_free(self._chosen_port):
            raise ToolchainError(
                f"Port {self._chosen_port} is in use: another program listens there.\n"
                "  Stop that program, choose another port, or 0 for any free one."
            )
        for attempt in range(1, _ATTEMPTS + 1):
            if not self._ports:
                self._ports = self._choose_ports()
            failure = self._try_start(inherited)
            if failure is None:
                self._was_ready = True
                return
            if _PORT_TAKEN not in failure or attempt == _ATTEMPTS:
                raise ToolchainError(failure)
            if self._was_ready:
                # Clients know the ports. A client that reconnects may itself occupy the port for a moment.
                until(lambda: all(map(is_free, self._ports.values())), _STOP_SECONDS)
            else:
                self._ports = {}  # another process took one between choosing and listening

    def stop(self) -> None:
        """Stop the broker by SIGTERM, by SIGKILL if that takes too long."""
        if self.is_running:
            self.resume()
            self._running_process().terminate()
            until(lambda: not self.is_running, _STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill the broker, as a power failure would."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None
        self._dismiss_guard()

    def restart(self) -> None:
        self.stop()
        self.start()

    def pause(self) -> None:
        """Pause the broker: connections stay open, requests get no response."""
        self._running_process().send_signal(signal.SIGSTOP)
        # Its threads may run for a moment after the signal was sent.
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        self._running_process().send_signal(signal.SIGCONT)

    def limit_topic_changes(self, partitions_per_second: float) -> None:
        """Set the controller mutation quota of all clients (KIP-599): partitions created or deleted a second.

        CreateTopics 6 and CreatePartitions 3 requests beyond it fail with THROTTLING_QUOTA_EXCEEDED. The
        connections of other clients, such as librdkafka, are muted until the rate is kept.
        """
        run_tool(
            self._distribution,
            "kafka.admin.ConfigCommand",
            *("--bootstrap-server", self.bootstrap_servers, "--entity-type", "clients", "--entity-default"),
            *("--alter", "--add-config", f"controller_mutation_rate={partitions_per_second}"),
            failure="The controller mutation quota could not be set",
        )

    def release(self) -> None:
        """Leave the broker running when this process ends."""
        self._running_process().returncode = 0  # this process waits for it no longer; Popen would warn
        self._process = None
        self._dismiss_guard()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _running_process(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise ToolchainError(f"The broker is not running. Its log: {self.log}")
        return self._process

    def _dismiss_guard(self) -> None:
        if self._guard:
            self._guard.dismiss()
            self._guard = None

    def _choose_ports(self) -> dict[str, int]:
        names = (*self.settings.protocols, "CONTROLLER")
        chosen = {"PLAINTEXT": self._chosen_port} if self._chosen_port else {}
        return {**dict(zip(names, free_ports(len(names)), strict=True)), **chosen}

    def _try_start(self, inherited: tuple[int, ...]) -> str | None:
        """Start once; return why it failed, None if it did not."""
        properties = write_files(self.settings, self._ports, self.folder)
        if stored_cluster_id(self.folder) is None:
            format_storage(self._distribution, properties, self.cluster_id, self.settings.sasl_users)
        log_start = self.log.stat().st_size if self.log.exists() else 0
        self._launch_process(properties, inherited)
        try:
            is_over = until(lambda: not self.is_running or self._is_ready(), _START_SECONDS)
        except BaseException:
            self.kill()
            raise
        if is_over and self.is_running:
            return None
        reason = "ended while starting" if is_over else f"was not ready after {_START_SECONDS} s"
        self.kill()
        written = self.log.read_bytes()[log_start:].decode(errors="replace")
        return f"The Kafka broker {reason}.\n{failure_lines(written)}\n  Its log: {self.log}"

    def _launch_process(self, properties: Path, inherited: tuple[int, ...]) -> None:
        self._guard = Guard("kill", "-KILL")
        self._process = launch_broker(self._distribution, properties, self.settings, self.log, inherited)
        self._guard.watch(str(self._process.pid))
        let_start(self._process)

    def _is_ready(self) -> bool:
        return is_serving(self._ports["PLAINTEXT"], self.cluster_id)


def ensure_class_data(distribution: KafkaDistribution, cache: Cache, progress: Progress) -> KafkaDistribution:
    """Return the distribution with an archive, recorded from a broker on first use."""

    def record(folder: Path, shown: Progress) -> None:
        with shown.step("Kafka: archiving its classes", expected="15 seconds"):
            archive = folder / CLASS_DATA_FILE
            recording = attrs.evolve(distribution, class_data=archive, is_recording=True)
            with tempfile.TemporaryDirectory() as data, Broker(recording, Path(data)):
                pass  # Java writes the archive when the broker ends

    folder = cache.ensure(class_data_entry(distribution.java, distribution.version), record, progress)
    return attrs.evolve(distribution, class_data=folder / CLASS_DATA_FILE)
