"""Hosts on one machine: processes with their own network, processes, mount points and clock since the boot.

A host is a process that waits, in namespaces of its own (`unshare`); others are started in them (`nsenter`).
Each has a network interface that is connected to a switch, which is a bridge in one more network namespace.
Faults disconnect the interface, or send signals to all processes of a host. When this process ends, all
namespaces end, too. It requires root on Linux.
"""

import ctypes
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from headwater.toolchain.broker.readiness import until
from headwater.toolchain.sessions import Guard
from tests.runtime.spark.processes import is_running, is_stopped

if TYPE_CHECKING:
    from tests.runtime.hosts.cpu_limit import CpuLimit

_SUBNET, _PREFIX = "10.77.0", 24
_BRIDGE, _INTERFACE = "switch", "eth0"
_PROGRAMS = ("unshare", "nsenter", "ip", "tc", "mount")
_BOOT_SECONDS = 10_000
"""Hosts were started at different times: clocks since the boot differ by this much from host to host."""
_WAIT_SECONDS = 60.0
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def reason_to_skip() -> str:
    """Return why hosts cannot be created here; empty if they can."""
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"hosts require the programs {', '.join(missing)}"
    if os.geteuid() != 0:
        return "hosts require root: they are network namespaces"
    command = _unshare(0, "ip link add name a0 type veth peer name a1 && ip link add name b0 type bridge")
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"namespaces are refused: {tried.stderr.strip()}" if tried.returncode else ""


class Host:
    """A host with its own IP address, processes and disk; `disk` is the same path on each host."""

    def __init__(self, network: "Network", number: int, name: str) -> None:
        self.name = name
        self.address = f"{_SUBNET}.{number}"
        self.disk = network.folder / "disk"
        self.files = network.folder / name
        """What is on the disk, as this process sees it."""
        self.cpu: CpuLimit | None = None
        """Limits the processes that start from now on."""
        self._network, self._number = network, number
        self._port = f"port{number}"
        self._init = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None
        self._started: list[subprocess.Popen[bytes]] = []
        self.files.mkdir(parents=True, exist_ok=True)
        self.power_on()

    @property
    def is_on(self) -> bool:
        return self._process is not None

    def power_on(self) -> None:
        """Start the host, with what is on its disk, and connect it."""
        script = f"mount --bind {self.files} {self.disk} && ip link set lo up && exec sleep infinity"
        self._guard = Guard("kill", "-KILL")
        command = _unshare(self._number * _BOOT_SECONDS, script)
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        self._guard.watch(str(self._process.pid))
        self._init = _started_sleep(self._process)
        self._network.connect(self._port, self._init)
        self.call("ip", "address", "add", f"{self.address}/{_PREFIX}", "dev", _INTERFACE)
        self.call("ip", "link", "set", _INTERFACE, "up")

    def power_off(self) -> None:
        """Disconnect the host and end its processes: the others are not notified."""
        if self._process is not None:
            self.cut()
            self._process.kill()
            self._process.wait()
            self._process = None
            assert self._guard is not None
            self._guard.dismiss()
            self._continue_parents()
            assert until(lambda: not is_running(self._init), _WAIT_SECONDS)
            for each in self._started:
                each.wait(_WAIT_SECONDS)
            self._network.remove(self._port)

    def cut(self) -> None:
        """Drop what the host sends, and what is sent to it."""
        self._network.disconnect(self._port)

    def reconnect(self) -> None:
        self._network.reconnect(self._port)

    def block(self, address: str) -> None:
        """Refuse what the host sends to an address: there is no route to it."""
        self.call("ip", "route", "add", "unreachable", f"{address}/32")

    def unblock(self, address: str) -> None:
        self.call("ip", "route", "delete", "unreachable", f"{address}/32")

    def slow_down(self, kilobits: int) -> None:
        """Limit what the host sends to so many kilobits per second."""
        rate = ("rate", f"{kilobits}kbit", "burst", "16kb", "latency", "2s")
        self.call("tc", "qdisc", "replace", "dev", _INTERFACE, "root", "tbf", *rate)

    def speed_up(self) -> None:
        self.call("tc", "qdisc", "delete", "dev", _INTERFACE, "root")

    def freeze(self) -> None:
        """Stop all processes of the host, as a hypervisor does; the kernel still answers for them."""

        def is_frozen() -> bool:
            found = self.processes()
            send_signal(signal.SIGSTOP, found)
            return all(map(is_stopped, found))

        assert until(is_frozen, _WAIT_SECONDS)

    def unfreeze(self) -> None:
        send_signal(signal.SIGCONT, self.processes())
        self._continue_parents()

    def kill(self) -> None:
        """Kill all processes of the host. Its kernel closes their connections."""

        def is_empty() -> bool:
            send_signal(signal.SIGKILL, self.processes())
            self._continue_parents()
            return not self.processes()

        assert until(is_empty, _WAIT_SECONDS)

    @property
    def started(self) -> tuple[int, ...]:
        """Return the running processes that this one has started on the host, whose children others are."""
        return tuple(each.pid for each in self._started if each.poll() is None)

    def processes(self) -> list[int]:
        """Return the processes of the host, as this process numbers them, without the waiting one."""
        own = Path(f"/proc/{self._init}/ns/pid").readlink()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != self._init:
                with suppress(OSError):
                    if (entry / "ns" / "pid").readlink() == own and is_running(int(entry.name)):
                        found.append(int(entry.name))
        return found

    def start(
        self, command: Sequence[str | Path], log: IO[bytes], environment: Mapping[str, str]
    ) -> "subprocess.Popen[bytes]":
        """Start a process on the host, in its disk's folder."""
        entered = self._entered(["sh", "-c", f'cd {self.disk} && exec "$@"', "sh", *command])
        process = subprocess.Popen(
            entered if self.cpu is None else self.cpu.command(entered),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def call(self, *command: str) -> None:
        """Run a command on the host; raises `subprocess.CalledProcessError`."""
        subprocess.run(self._entered(command), check=True, capture_output=True)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Use the network of the host in this thread, and in threads and processes that it starts."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            _set_network(f"/proc/{self._init}/ns/net")
            yield
        finally:
            _set_network(f"/proc/self/fd/{before}")
            os.close(before)

    def _entered(self, command: Sequence[str | Path]) -> list[str | Path]:
        return ["nsenter", "--target", str(self._init), "--net", "--mount", "--pid", "--time", *command]

    def _continue_parents(self) -> None:
        """Continue `nsenter`, which stops itself when the process that it has started is stopped."""
        self._started = [each for each in self._started if each.poll() is None]
        for each in self._started:
            each.send_signal(signal.SIGCONT)


def send_signal(sent: signal.Signals, processes: Sequence[int]) -> None:
    """Send a signal to the processes that have not ended."""
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, sent)


class Network:
    """A switch and the hosts that are connected to it; as a context manager, it ends all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hosts: list[Host] = []
        (folder / "disk").mkdir(parents=True, exist_ok=True)
        self._switch: subprocess.Popen[bytes] | None = None
        self._init = 0

    def __enter__(self) -> Self:
        self._guard = Guard("kill", "-KILL")
        script = f"ip link add name {_BRIDGE} type bridge && ip link set {_BRIDGE} up && exec sleep infinity"
        self._switch = subprocess.Popen(_unshare(0, script), stdin=subprocess.DEVNULL, start_new_session=True)
        self._guard.watch(str(self._switch.pid))
        self._init = _started_sleep(self._switch)
        return self

    def __exit__(self, *_: object) -> None:
        for host in self.hosts:
            host.power_off()
        assert self._switch is not None
        self._switch.kill()
        self._switch.wait()
        self._guard.dismiss()

    def add(self, name: str) -> Host:
        """Return a new host that is on and connected."""
        host = Host(self, len(self.hosts) + 1, name)
        self.hosts.append(host)
        return host

    def connect(self, port: str, init: int) -> None:
        peer = ("type", "veth", "peer", "name", _INTERFACE, "netns", str(init))
        self._ip("link", "add", "name", port, *peer)
        self._ip("link", "set", port, "master", _BRIDGE, "up")

    def disconnect(self, port: str) -> None:
        self._ip("link", "set", port, "nomaster")

    def remove(self, port: str) -> None:
        """Remove a port: a socket of this process may keep the network of a host that has ended."""
        with suppress(subprocess.CalledProcessError):  # it has ended with the network of its host
            self._ip("link", "delete", port)

    def reconnect(self, port: str) -> None:
        self._ip("link", "set", port, "master", _BRIDGE)

    def _ip(self, *arguments: str) -> None:
        command = ["nsenter", "--target", str(self._init), "--net", "ip", *arguments]
        subprocess.run(command, check=True, capture_output=True)


def _unshare(boot_seconds: int, script: str) -> list[str]:
    namespaces = ("--net", "--mount", "--pid", "--time", "--boottime", str(boot_seconds))
    return ["unshare", *namespaces, "--fork", "--kill-child", "--mount-proc", "sh", "-c", script]


def _started_sleep(process: "subprocess.Popen[bytes]") -> int:
    """Return the process in the new namespaces, when it has prepared them."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")

    def find() -> int:
        with suppress(OSError):
            for child in children.read_text().split():
                if Path(f"/proc/{child}/comm").read_text().strip() == "sleep":
                    return int(child)
        return 0

    found = until(find, _WAIT_SECONDS)
    assert found, "the host has not started"
    return found


def _set_network(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if _libc.setns(descriptor, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"the network {path} cannot be used")
    finally:
        os.close(descriptor)
