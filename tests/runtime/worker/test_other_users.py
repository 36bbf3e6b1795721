"""Another user of the machine who can write to the state folder, or answers at the socket of an owner."""

import os
import pickle
import socket
import subprocess
import sys
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path
from threading import Thread

import pytest

from headwater_spark.worker.owner_socket import OwnerCall, OwnerSocket
from headwater_spark.worker.state_folders import StateNotWrittenError
from headwater_spark.worker.task_lease import Lease

_KEY = b"a-key-of-another-user"
_SECONDS = 90.0
_HOSTILE = """
import hmac, os, socket, sys
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
os.setuid(12345)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
listener.bind("\\0" + sys.argv[1])
listener.listen()
print("ready", flush=True)
caller, _ = listener.accept()
connection = Connection(caller.detach())
try:
    deliver_challenge(connection, b"a-key-of-another-user")
    answer_challenge(connection, b"a-key-of-another-user")
    print("received", len(connection.recv_bytes()), flush=True)
except (EOFError, OSError):
    print("received nothing", flush=True)
"""


class _Exploit:
    """What an attacker pickles: unpickling it creates a file."""

    def __init__(self, file: Path) -> None:
        self._file = str(file)

    def __reduce__(self) -> tuple[object, tuple[str, int]]:
        return os.open, (self._file, os.O_CREAT | os.O_WRONLY)


def test_a_lease_in_a_shared_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    with pytest.raises(StateNotWrittenError, match="all users can write to"):
        Lease.try_acquire(tmp_path / "shared" / "app", "0-0", "an address")


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can start a process of another user")
def test_nothing_is_sent_to_a_process_of_another_user() -> None:
    name = f"headwater-test-{os.getpid()}"
    command = [sys.executable, "-c", _HOSTILE, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as hostile:
        try:
            assert hostile.stdout is not None
            assert hostile.stdout.readline() == "ready\n"
            with OwnerCall(f"\0{name}\n{_KEY.decode()}", "a password") as call:
                assert call.has_ended(_SECONDS)
                assert call.result() is None
            assert hostile.stdout.readline() == "received nothing\n"
        finally:
            hostile.kill()


def test_the_user_is_checked_before_anything_is_unpickled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ends are of this user here, so the check reads another id of this user."""
    answered: list[object] = []
    owner = OwnerSocket(tmp_path, lambda connection: answered.append(connection.recv()))
    address, _, key = owner.address.partition("\n")
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    exploited = tmp_path / "exploited"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.connect(address)
        caller.settimeout(None)
        connection = Connection(os.dup(caller.fileno()))
        sender = Thread(target=_send, args=(connection, key.encode(), _Exploit(exploited)), daemon=True)
        sender.start()
        sender.join(_SECONDS)
        connection.close()
    owner.close()
    assert not sender.is_alive()
    assert answered == []
    assert not exploited.exists()


def _send(connection: Connection, key: bytes, exploit: _Exploit) -> None:
    try:
        answer_challenge(connection, key)
        deliver_challenge(connection, key)
        connection.send_bytes(pickle.dumps(exploit))
    except (EOFError, OSError):
        pass
