"""The socket by which other processes of the machine send batches to the owner of a task.

It is a file in the folder of the application's local state, so it reaches whoever sees the leases there. Each
call has a thread of its own, on both sides: authentication and sending block without a limit if the other
process is stopped.
"""

import os
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path
from secrets import token_hex
from threading import Event, Thread
from typing import Any, Self

from headwater_spark.worker.state_folders import create_private_folder
from headwater_spark.worker.task_lease import close_in_children, forget_descriptor

_FOLDER = "sockets"
_SUFFIX = ".sock"
_LONGEST_PATH = 100
"""The address of a Unix socket has at most 108 bytes, on some systems 104."""
_BACKLOG = 64
_PEER = struct.Struct("iII")
"""Process, user and group of `SO_PEERCRED`."""
_CONNECT_SECONDS = 1
"""How long one attempt to connect may take, while many calls wait; the caller tries again."""
_PAUSE_SECONDS = 0.1
_UNUSED_SECONDS = 60.0
_SILENCE_SECONDS = 30
"""A process that sends nothing in the middle of a request for this long is given up."""


class OwnerSocket:
    """Accepts the calls of other processes, and answers each in a thread by `answer`."""

    def __init__(self, folder: Path, answer: Callable[[Connection], None]) -> None:
        """Listen in `folder`; raises `OSError`."""
        self._answer = answer
        self._key = token_hex(16).encode()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._path: Path | None = None
        try:
            address = self._bind(folder / _FOLDER)
        except BaseException:
            self._socket.close()
            raise
        close_in_children(self._socket.fileno(), self._socket.close)
        self.address = f"{address}\n{self._key.decode()}"
        Thread(target=self._serve, name="task-owner", daemon=True).start()

    @property
    def is_reachable(self) -> bool:
        """Return whether other processes find the socket; not if its folder was deleted meanwhile."""
        return self._path is None or self._path.exists()

    def close(self) -> None:
        """Accept no more calls, and delete the file."""
        forget_descriptor(self._socket.fileno())
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # ends `accept`
        self._socket.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _bind(self, folder: Path) -> str:
        create_private_folder(folder)
        _delete_unused(folder)
        name = token_hex(8)
        draft, path = folder / f"{name}.new", folder / f"{name}{_SUFFIX}"
        try:
            with _ShortPath(draft) as short:
                self._socket.bind(short)
            self._socket.listen(_BACKLOG)
            draft.rename(path)  # only now: a socket that refuses calls is deleted by other processes
        except OSError:
            # Some file systems have no sockets. An abstract address is visible in this container only.
            draft.unlink(missing_ok=True)
            self._socket.bind(f"\0headwater-{name}")
            self._socket.listen(_BACKLOG)
            return f"\0headwater-{name}"
        self._path = path
        return str(path)

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                if self._socket.fileno() < 0:
                    return
                time.sleep(_PAUSE_SECONDS)  # too many open files, for example
                continue
            Thread(target=self._answer_call, args=(caller,), daemon=True).start()

    def _answer_call(self, caller: socket.socket) -> None:
        _limit_waits(caller, _SILENCE_SECONDS)
        connection = Connection(caller.detach())
        descriptor = connection.fileno()
        close_in_children(descriptor, connection.close)
        try:
            with suppress(OSError, EOFError, AuthenticationError):  # the caller may have died
                _check_user(descriptor)
                deliver_challenge(connection, self._key)
                answer_challenge(connection, self._key)
                self._answer(connection)
        finally:
            forget_descriptor(descriptor)
            connection.close()


class OwnerCall:
    """One call of the owner at `address`, in a thread of its own: use it in a `with` block."""

    def __init__(self, address: str, request: object) -> None:
        self._address, _, key = address.partition("\n")
        self._key = key.encode()
        self._request = request
        self._socket: socket.socket | None = None
        self._is_cancelled = False
        self._has_ended = Event()
        self._result: Any = None
        self._failure: Exception | None = None

    def __enter__(self) -> Self:
        Thread(target=self._run, name="call-owner", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_cancelled = True
        caller = self._socket
        if caller is not None:
            with suppress(OSError):
                caller.shutdown(socket.SHUT_RDWR)

    def has_ended(self, seconds: float) -> bool:
        """Return whether the call has ended, after waiting for it for `seconds` at most."""
        return self._has_ended.wait(seconds)

    def result(self) -> Any:  # noqa: ANN401 - what the owner sends
        """Return what the owner has answered; None: it has not, it has died, or it is another process."""
        if self._failure is not None:
            raise self._failure
        return self._result

    def _run(self) -> None:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
                self._socket = caller
                self._call(caller)
        except (OSError, EOFError, AuthenticationError):
            pass
        except Exception as error:  # noqa: BLE001 - raised in the calling thread
            self._failure = error
        finally:
            self._has_ended.set()

    def _call(self, caller: socket.socket) -> None:
        _limit_waits(caller, _CONNECT_SECONDS)
        while not self._is_cancelled:
            with suppress(BlockingIOError):
                _connect_to_owner(caller, self._address)
                break
        _check_user(caller.fileno())
        _limit_waits(caller, 0)  # from now on, `__exit__` ends each wait
        with Connection(os.dup(caller.fileno())) as connection:
            answer_challenge(connection, self._key)
            deliver_challenge(connection, self._key)
            connection.send(self._request)
            self._result = connection.recv()


class _ShortPath:
    """A path that fits into the address of a socket, also if its folder has a long name."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = -1

    def __enter__(self) -> str:
        path = os.fspath(self._path)
        if len(os.fsencode(path)) <= _LONGEST_PATH:
            return path
        self._folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._folder}/{self._path.name}"

    def __exit__(self, *_: object) -> None:
        if self._folder >= 0:
            os.close(self._folder)


def _check_user(descriptor: int) -> None:
    """Raise AuthenticationError if the process at the other end has another user.

    The key in a lease proves nothing if another user has written the lease: what a process receives is
    unpickled, and what it sends contains credentials.
    """
    with socket.socket(fileno=os.dup(descriptor)) as connected:
        peer = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    _, user, _ = _PEER.unpack(peer)
    if user != os.geteuid():
        raise AuthenticationError(f"the process at the other end has the user id {user}")


def _limit_waits(connected: socket.socket, seconds: int) -> None:
    """Let each call that reads or writes fail after `seconds`, 0 = never; it stays a blocking socket."""
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        connected.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", seconds, 0))


def _connect_to_owner(caller: socket.socket, address: str) -> None:
    if address.startswith("\0"):
        caller.connect(address)
        return
    with _ShortPath(Path(address)) as short:
        caller.connect(short)


def _delete_unused(folder: Path) -> None:
    """Delete the sockets of processes that were killed: nothing listens there."""
    for path in folder.iterdir():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(OSError):
            if path.suffix != _SUFFIX and time.time() - path.stat().st_mtime < _UNUSED_SECONDS:
                continue  # a process is creating it
            probe.settimeout(0)  # a stopped process accepts no call, but has its socket
            try:
                _connect_to_owner(probe, str(path))
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)
