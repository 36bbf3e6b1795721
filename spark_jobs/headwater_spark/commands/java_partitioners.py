"""Partitioners in Java: a JVM with the code of an application returns the partitions of many keys at once.

The code is foreign: it may print, exit, or never return. Its output is kept for messages, and after the
timeout the JVM is killed.
"""

import os
import signal
import struct
import subprocess
import zipfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread, Timer
from typing import IO

import attrs
import click
import numpy as np

from headwater.cli.java_export import (
    KEPT_LINES,
    absolute_class_path,
    keep_last,
    kill_group,
    no_java,
    unpack_jars,
    unreadable_file,
)
from headwater.compiler import build_nodes
from headwater.model.formats import DEFAULT_FORMAT
from headwater.model.nodes import SourceNode
from headwater.model.problems import ProblemsError
from headwater.model.topology import TopologyDocument
from headwater.toolchain.machine import JAVA
from headwater.toolchain.streams_library import ensure_streams_library
from headwater_spark.commands.console import JavaCode
from headwater_spark.engine.partitioners.hashing import (
    PartitionerEndedError,
    PartitionerError,
    UserPartitioner,
)
from headwater_spark.engine.serdes.plain import PLAIN

_MAIN = "io.headwater.streams.partitioning.PartitionerProgram"
_DEFAULT_SERDE = "default.key.serde"
_MOST_KEYS = 100_000
_DONE, _FAILED = b"\x00", b"\x01"
_INT, _LENGTH = struct.Struct(">i"), struct.Struct(">H")
_END_SECONDS = 5.0


class PartitionerProgram:
    """A JVM that runs a partitioner. It is started by the first request.

    Its answers have a pipe of their own: Java itself, agents and the code may write to standard output.
    """

    def __init__(self, command: Sequence[str], folder: Path, name: str, timeout_seconds: float) -> None:
        self._command = command
        self._folder = folder
        self._name = name
        self._timeout_seconds = timeout_seconds
        self._is_late = False
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._started: _JavaProcess | None = None
        self._failure: PartitionerEndedError | None = None

    def partitions(self, topic: str, keys: Sequence[bytes], counts: Sequence[int]) -> Sequence[Sequence[int]]:
        """Return the partitions of serialized keys for each count; raises `PartitionerError`."""
        found: list[list[int]] = [[] for _ in counts]
        name = topic.encode()
        head = [_LENGTH.pack(len(name)), name, *map(_INT.pack, (len(counts), *counts))]
        for first in range(0, len(keys), _MOST_KEYS):
            part = keys[first : first + _MOST_KEYS]
            lengths = np.fromiter(map(len, part), ">i4", len(part)).tobytes()
            request = b"".join((*head, _INT.pack(len(part)), lengths, *part))
            answer = self._exchange_message(request, len(part) * len(counts) * _INT.size)
            table = np.frombuffer(answer, ">i4").reshape(len(part), len(counts))
            for index, partitions in enumerate(table.T.tolist()):
                found[index] += partitions
        return found

    def close(self) -> None:
        """End the JVM: it ends with its input."""
        if self._started is not None:
            self._started.close()

    def _exchange_message(self, request: bytes, size: int) -> bytes:
        """Send a request, and return the answer, which has `size` bytes."""
        if self._started is None or self._failure is not None:
            return self._read_answer(self._start(), request, size)
        return self._read_answer(self._started, request, size)

    def _start(self) -> "_JavaProcess":
        """Start the JVM, and wait until it has created the partitioner; a failure is final."""
        if self._failure is None:
            try:
                self._started = started = _JavaProcess.start(self._command, self._folder, self._lines)
                self._read_answer(started, b"", 0)
            except PartitionerError as error:
                self._failure = PartitionerEndedError(self._name, error.reason)
            except OSError as error:
                self._failure = PartitionerEndedError(self._name, f"Java cannot be started: {error}")
            else:
                return started
        raise self._failure

    def _read_answer(self, started: "_JavaProcess", request: bytes, size: int) -> bytes:
        timer = Timer(self._timeout_seconds, self._kill_process)
        timer.daemon = True
        timer.start()
        try:
            started.stdin.write(request)
            started.stdin.flush()
            status = started.read(1)
            if status == _FAILED:
                (size,) = _INT.unpack(started.read(_INT.size))
                raise PartitionerError(self._name, started.read(size).decode(errors="replace"))
            if status != _DONE:
                kill_group(started.process)
                raise PartitionerEndedError(self._name, "it has sent an answer that cannot be read")
            return started.read(size)
        except (OSError, EOFError):
            raise PartitionerEndedError(self._name, self._failure_reason(started)) from None
        finally:
            timer.cancel()

    def _kill_process(self) -> None:
        self._is_late = True
        if self._started is not None:
            kill_group(self._started.process)

    def _failure_reason(self, started: "_JavaProcess") -> str:
        with suppress(subprocess.TimeoutExpired):
            started.process.wait(_END_SECONDS)
        started.reader.join(_END_SECONDS)
        code = started.process.poll()
        if self._is_late:
            reason = f"it has not returned within {self._timeout_seconds:g} s, and Java was killed"
        elif code is not None and code < 0:
            reason = f"Java was ended by signal {signal.Signals(-code).name}"
        elif code is None:
            reason = "Java has closed the pipe of its answers"
        else:
            reason = f"Java ended with exit code {code}"
        return ": ".join((reason, "\n".join(self._lines))) if self._lines else reason


@attrs.frozen
class _JavaProcess:
    """The process of a JVM, its pipes, and the thread that reads what it prints."""

    process: subprocess.Popen[bytes]
    stdin: IO[bytes]
    answers: IO[bytes]
    output: IO[bytes]
    reader: Thread

    @classmethod
    def start(cls, command: Sequence[str], folder: Path, lines: deque[str]) -> "_JavaProcess":
        """Start the process with the file of its answers as the last argument; raises `OSError`."""
        answers, writer = os.pipe()
        try:
            process = subprocess.Popen(
                [*command, f"/dev/fd/{writer}"],
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[writer],
                start_new_session=True,
            )
        except BaseException:
            os.close(answers)
            raise
        finally:
            os.close(writer)
        output = _require_stream(process.stdout)
        reader = Thread(target=keep_last, args=(output, lines), daemon=True)
        reader.start()
        return cls(process, _require_stream(process.stdin), os.fdopen(answers, "rb"), output, reader)

    def read(self, size: int) -> bytes:
        """Return so many bytes of the answers; raises `EOFError`."""
        found = self.answers.read(size)
        if len(found) < size:
            raise EOFError
        return found

    def close(self) -> None:
        with suppress(OSError):
            self.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_END_SECONDS)
        kill_group(self.process)
        self.process.wait()
        self.reader.join(_END_SECONDS)
        self.answers.close()
        if not self.reader.is_alive():
            self.output.close()


@contextmanager
def java_partitioners(
    classes: Mapping[str, str], code: JavaCode, document: TopologyDocument
) -> Iterator[Mapping[str, UserPartitioner]]:
    """Return the partitioners, whose JVMs are started when they are used; `classes` is input topic → class.

    Raises:
        ProblemsError: There is no Java, or the jar cannot be read.
        click.UsageError: The serde of the keys of a topic is not known.
    """
    if code.jar is None or not classes:
        yield {}
        return
    serdes = {**_declared_serdes(document), **code.key_serdes}
    if unknown := sorted(classes.keys() - serdes.keys()):
        raise click.UsageError(
            f"The document does not name a serde of Kafka for the keys of {unknown[0]}. Add --key-serde "
            f"{unknown[0]}=SERDE: {', '.join(sorted(PLAIN))}, or a class."
        )
    java = JAVA.locate()
    if java is None:
        raise ProblemsError([no_java()])
    library = ensure_streams_library()
    with ExitStack() as stack:
        temporary = TemporaryDirectory(prefix="headwater-partitioner-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(temporary))
        try:
            jars = (str(library), *unpack_jars(code.jar.absolute(), folder / "application"))
        except (OSError, zipfile.BadZipFile) as error:
            raise ProblemsError([unreadable_file(str(code.jar), str(error))]) from None
        class_path = os.pathsep.join((*jars, *map(absolute_class_path, code.class_path)))
        properties = "" if code.properties is None else str(code.properties.absolute())
        programs: dict[tuple[str, str], PartitionerProgram] = {}
        found: dict[str, UserPartitioner] = {}
        for topic, name in classes.items():
            used = name, serdes[topic]
            if used not in programs:
                command = [str(java), "-cp", class_path, _MAIN, *used, properties]
                program = PartitionerProgram(command, folder, name, code.seconds_to_answer)
                programs[used] = stack.enter_context(closing(program))
            found[topic] = _java_partitioner(programs[used], *used, topic)
        yield found


def _require_stream(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise RuntimeError("a process was started without a pipe")
    return stream


def _java_partitioner(program: PartitionerProgram, name: str, serde: str, topic: str) -> UserPartitioner:
    many = partial(program.partitions, topic)

    def one(key: bytes, partitions: int) -> int:
        [[found]] = many([key], [partitions])
        return found

    return UserPartitioner(name, one, many, serde=serde)


def _declared_serdes(document: TopologyDocument) -> Mapping[str, str]:
    """Return topic → serde of its keys, as far as the document names a serde that Java has, too.

    A source without formats is of a document from code, whose code may name a serde. Several names of the
    runtime's formats are one format in Python, and not in Java: a configured class is passed as it is.
    """
    configured = document.application.config.get(_DEFAULT_SERDE, "string").strip()
    nodes = build_nodes(document)
    id_, internal = document.application.id, {each.name for each in nodes.repartition_topics}
    found: dict[str, str] = {}
    for node in nodes.nodes:
        if not isinstance(node, SourceNode) or node.reads is None or node.reads.foreign_key is not None:
            continue
        key = node.reads.format.key
        name = configured if key is None or key.name == DEFAULT_FORMAT else key.name
        is_class = name == configured and "." in name
        if (name in PLAIN or is_class) and (key is None or key.window is None):
            topics = [f"{id_}-{topic}" if topic in internal else topic for topic in node.topics]
            found |= dict.fromkeys(topics, name)
    return found
