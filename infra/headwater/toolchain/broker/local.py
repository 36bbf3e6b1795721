"""The broker of `headwater local`: it runs after the command has ended, and is found again by its folder.

The broker process holds a lock on the file `lock` while it runs. So a state file that is left after a crash
or a reboot is recognized, and another process that got the old process id is never stopped.
"""

import fcntl
import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from headwater.toolchain.broker.launch import Settings, log_file
from headwater.toolchain.broker.process import Broker
from headwater.toolchain.broker.readiness import HOST, is_serving, until
from headwater.toolchain.commands import ToolchainError
from headwater.toolchain.kafka import KafkaDistribution

DEFAULT_PORT = 9092
_STOP_SECONDS = 20
_START_SECONDS = 150
"""For a start by another process: it may take more than one attempt."""
_ANSWER_SECONDS = 30


@attrs.frozen(kw_only=True)
class LocalBroker:
    """A running broker of a folder, whichever process started it."""

    pid: int
    port: int
    cluster_id: str
    folder: Path = attrs.field(converter=Path)

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def log(self) -> Path:
        return log_file(self.folder)

    @property
    def is_ready(self) -> bool:
        return is_serving(self.port, self.cluster_id)


def default_folder() -> Path:
    """Return `headwater/local` in the user's state folder as XDG defines it."""
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "headwater" / "local"


def up(
    distribution: KafkaDistribution,
    folder: Path | None = None,
    *,
    port: int = DEFAULT_PORT,
    settings: Settings | None = None,
) -> LocalBroker:
    """Return the running broker of `folder`, started on `port` (0: any free one) if there is none.

    It keeps the topics of its last run. Raises `ToolchainError` if it cannot start or has another port.
    """
    broker = Broker(distribution, folder or default_folder(), settings, port=port)
    until(lambda: _start_broker(broker) or _read_state(broker.folder), _START_SECONDS)
    if local := until(lambda: _start_broker(broker) or _running_broker(broker.folder, port), _ANSWER_SECONDS):
        return local
    raise ToolchainError(
        f"A local broker runs in {broker.folder} but does not answer.\n"
        f"  Read its log ({broker.log}), then stop it: headwater local down"
    )


def status(folder: Path | None = None) -> LocalBroker | None:
    """Return the broker of `folder` if its process runs, None otherwise."""
    folder = folder or default_folder()
    if not folder.exists():
        return None
    with _lock_folder(folder) as lock:
        return None if lock is not None else _read_state(folder)


def find_crashed_broker(folder: Path | None = None) -> LocalBroker | None:
    """Return the broker of `folder` that ended without `down`: by a crash, a kill or a reboot."""
    folder = folder or default_folder()
    return None if status(folder) else _read_state(folder)


def down(folder: Path | None = None, *, delete_data: bool = False) -> bool:
    """Stop the broker of `folder` and optionally delete its topics; return whether one was running."""
    folder = folder or default_folder()
    local = status(folder)
    if local is not None:
        _send_record(local, signal.SIGCONT, signal.SIGTERM)
        if not until(lambda: status(folder) is None, _STOP_SECONDS):
            _send_record(local, signal.SIGKILL)
            until(lambda: status(folder) is None, _STOP_SECONDS)
    if folder.exists():
        _state_file(folder).unlink(missing_ok=True)
        if delete_data:
            shutil.rmtree(folder)
    return local is not None


def _send_record(local: LocalBroker, *signals: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has ended since
        for each in signals:
            os.kill(local.pid, each)


def _start_broker(broker: Broker) -> LocalBroker | None:
    """Start `broker` and record it; None if it runs already or another process starts it."""
    with _lock_folder(broker.folder) as lock:
        if lock is None:
            return None
        _state_file(broker.folder).unlink(missing_ok=True)
        broker.start(inherited=(lock,))
        local = LocalBroker(
            pid=broker.pid,
            port=int(broker.bootstrap_servers.rpartition(":")[2]),
            cluster_id=broker.cluster_id,
            folder=broker.folder,
        )
        _state_file(broker.folder).write_text(json.dumps(attrs.asdict(local), default=str), encoding="utf-8")
        broker.release()
        return local


def _running_broker(folder: Path, port: int) -> LocalBroker | None:
    """Return the recorded broker once it answers; raises `ToolchainError` if it is not at `port`."""
    local = _read_state(folder)
    if local is None or not local.is_ready:
        return None
    if port not in {0, local.port}:
        raise ToolchainError(
            f"A local broker already runs at {local.bootstrap_servers}, not at port {port}.\n"
            "  Use that one, or stop it first: headwater local down"
        )
    return local


def _read_state(folder: Path) -> LocalBroker | None:
    try:
        return LocalBroker(**json.loads(_state_file(folder).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None  # missing, or not completely written yet


def _state_file(folder: Path) -> Path:
    return folder / "state.json"


@contextmanager
def _lock_folder(folder: Path) -> Iterator[int | None]:
    """Yield the lock's file descriptor, or None if a broker or another `up` holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield descriptor
    finally:
        os.close(descriptor)
