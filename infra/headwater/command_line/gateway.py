"""Watch the JVM of Spark, without which a driver in Python can do nothing."""

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Self

from headwater.model.problems import Problem, ProblemCode

_LOCAL = "127.0.0.1"
_PORT_VARIABLE = "PYSPARK_GATEWAY_PORT"
_CONNECT_SECONDS = 10.0


class GatewayWatch:
    """Keeps a connection to Spark's gateway, which the operating system closes when the JVM ends.

    A JVM that hangs keeps the connection. The gateway reads nothing from it: a command must begin with its
    secret.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._on_end: Callable[[], None] | None = None
        self._connection: socket.socket | None = None
        self._is_closed = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._watch, name="gateway", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_closed = True
            connection = self._connection
        if connection is not None:
            with suppress(OSError):  # the gateway, or the thread below, has closed it
                connection.shutdown(socket.SHUT_RDWR)

    def has_ended(self, seconds: float = 0) -> bool:
        """Return whether the JVM has ended, or ends within `seconds`."""
        return self._ended.wait(seconds)

    def on_end(self, call: Callable[[], None]) -> None:
        """Call `call` when the JVM ends, in a thread; at once if it has ended."""
        with self._lock:
            self._on_end = call
            is_late = self._ended.is_set()
        if is_late:
            call()

    def _watch(self) -> None:
        try:
            with socket.create_connection((_LOCAL, self._port), _CONNECT_SECONDS) as connection:
                connection.settimeout(None)
                with self._lock:
                    self._connection = connection
                while not self._is_closed and connection.recv(1):
                    pass
        except OSError:
            pass  # refused or reset
        with self._lock:
            if self._is_closed:
                return
            self._ended.set()
            call = self._on_end
        if call is not None:
            call()


def gateway_port_of(environment: Mapping[str, str]) -> int | None:
    """Return the port of the gateway if `spark-submit` has started this process."""
    port = environment.get(_PORT_VARIABLE, "")
    return int(port) if port.isascii() and port.isdigit() else None


def spark_ended(name: str, found: str) -> Problem:
    """Return the problem that Spark's JVM has ended; `found` says how."""
    return Problem(
        code=ProblemCode.SPARK_ENDED,
        application=name,
        summary="Spark's JVM has ended.",
        expected="a JVM that runs as long as the application",
        found=found,
        why="Spark processes no records without it. No record is lost: uncommitted transactions are aborted.",
        fix="Start again: processing resumes where it stopped. If the operating system has killed the JVM "
        "for lack of memory (its log says so), add memory or reduce spark.driver.memory and --max-records.",
    )
