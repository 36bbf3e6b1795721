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

import click
import numpy as np

from headwater.cli.export_problems import no_java, unreadable
from headwater.cli.java_export import (
    KEPT_LINES,
    absolute_class_path,
    keep_last,
    kill_group,
    streams_library,
    unpacked,
)
from headwater.compiler import build_nodes
from headwater.model.nodes import SourceNode
from headwater.model.problems import ProblemsError
from headwater.model.topology import TopologyDocument
from headwater.toolchain.machine import JAVA
from headwater_spark.commands.java_code import JavaCode
from headwater_spark.driver.reshard.problems import partitioner_failed
from headwater_spark.engine.partitioners.hashing import (
    PartitionerEndedError,
    PartitionerError,
    UserPartitioner,
)
from headwater_spark.engine.program.formats import Defaults, formats_by_node
from headwater_spark.engine.serdes.plain import PLAIN

_MAIN = "io.headwater.streams.partitioning.PartitionerProgram"
_DEFAULT_SERDE = "default.key.serde"
_MOST_KEYS = 100_000
_FAILED = b"\x01"
_INT, _LENGTH = struct.Struct(">i"), struct.Struct(">H")
_END_SECONDS = 5.0


class PartitionerProgram:
    """A JVM that runs a partitioner; raises `PartitionerError` if it cannot create it."""

    def __init__(self, command: Sequence[str], folder: Path, name: str, timeout_seconds: float) -> None:
        self._name = name
        self._timeout_seconds = timeout_seconds
        self._is_late = False
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._stdin, self._stdout = _opened(self._process.stdin), _opened(self._process.stdout)
        self._stderr = _opened(self._process.stderr)
        self._reader = Thread(target=keep_last, args=(self._stderr, self._lines), daemon=True)
        self._reader.start()
        try:
            self._exchange(b"", 0)
        except BaseException:
            self.close()
            raise

    def partitions(self, topic: str, keys: Sequence[bytes], counts: Sequence[int]) -> Sequence[Sequence[int]]:
        """Return the partitions of serialized keys for each count; raises `PartitionerError`."""
        found: list[list[int]] = [[] for _ in counts]
        name = topic.encode()
        head = [_LENGTH.pack(len(name)), name, *map(_INT.pack, (len(counts), *counts))]
        for first in range(0, len(keys), _MOST_KEYS):
            part = keys[first : first + _MOST_KEYS]
            lengths = np.fromiter(map(len, part), ">i4", len(part)).tobytes()
            request = b"".join((*head, _INT.pack(len(part)), lengths, *part))
            answer = self._exchange(request, len(part) * len(counts) * _INT.size)
            table = np.frombuffer(answer, ">i4").reshape(len(part), len(counts))
            for index, partitions in enumerate(table.T.tolist()):
                found[index] += partitions
        return found

    def close(self) -> None:
        """End the JVM: it ends with its input."""
        with suppress(OSError):
            self._stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        kill_group(self._process)
        self._process.wait()
        self._reader.join(_END_SECONDS)
        self._stdout.close()
        if not self._reader.is_alive():
            self._stderr.close()

    def _exchange(self, request: bytes, size: int) -> bytes:
        """Send a request, and return the answer, which has `size` bytes."""
        timer = Timer(self._timeout_seconds, self._kill)
        timer.daemon = True
        timer.start()
        try:
            self._stdin.write(request)
            self._stdin.flush()
            status = self._read(1)
            if status == _FAILED:
                (size,) = _INT.unpack(self._read(_INT.size))
                raise PartitionerError(self._name, self._read(size).decode(errors="replace"))
            return self._read(size)
        except (OSError, EOFError):
            raise PartitionerEndedError(self._name, self._reason()) from None
        finally:
            timer.cancel()

    def _read(self, size: int) -> bytes:
        found = self._stdout.read(size)
        if len(found) < size:
            raise EOFError
        return found

    def _kill(self) -> None:
        self._is_late = True
        kill_group(self._process)

    def _reason(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self._reader.join(_END_SECONDS)
        code = self._process.poll()
        if self._is_late:
            reason = f"it has not returned within {self._timeout_seconds:g} s, and Java was killed"
        elif code is not None and code < 0:
            reason = f"Java was ended by signal {signal.Signals(-code).name}"
        else:
            reason = f"Java ended with exit code {code}"
        return ": ".join((reason, "\n".join(self._lines))) if self._lines else reason


@contextmanager
def java_partitioners(
    classes: Mapping[str, str], code: JavaCode, document: TopologyDocument
) -> Iterator[Mapping[str, UserPartitioner]]:
    """Start the JVMs of partitioners; `classes` is input topic → class.

    Raises:
        ProblemsError: A partitioner cannot be created.
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
    library = streams_library()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="headwater-partitioner-")))
        try:
            jars = (str(library), *unpacked(code.jar.absolute(), folder / "application"))
        except (OSError, zipfile.BadZipFile) as error:
            raise ProblemsError([unreadable(str(code.jar), str(error))]) from None
        class_path = os.pathsep.join((*jars, *map(absolute_class_path, code.class_path)))
        properties = "" if code.properties is None else str(code.properties.absolute())
        programs: dict[tuple[str, str], PartitionerProgram] = {}
        found: dict[str, UserPartitioner] = {}
        for topic, name in classes.items():
            used = name, serdes[topic]
            if used not in programs:
                command = [str(java), "-cp", class_path, _MAIN, *used, properties]
                try:
                    program = PartitionerProgram(command, folder, name, code.timeout_seconds)
                except PartitionerError as error:
                    id_ = document.application.id
                    raise ProblemsError(
                        [partitioner_failed(id_, error.name, error.reason, has_begun=False)]
                    ) from error
                programs[used] = stack.enter_context(closing(program))
            found[topic] = _partitioner(programs[used], name, topic)
        yield found


def _opened(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise RuntimeError("a process was started without a pipe")
    return stream


def _partitioner(program: PartitionerProgram, name: str, topic: str) -> UserPartitioner:
    many = partial(program.partitions, topic)

    def one(key: bytes, partitions: int) -> int:
        [[found]] = many([key], [partitions])
        return found

    return UserPartitioner(name, one, many)


def _declared_serdes(document: TopologyDocument) -> Mapping[str, str]:
    """Return topic → serde of its keys, as far as the document names one that Java has, too."""
    config = document.application.config
    nodes = build_nodes(document)
    id_, internal = document.application.id, {each.name for each in nodes.repartition_topics}
    formats = formats_by_node(nodes, Defaults.of(config))
    found: dict[str, str] = {}
    for node in nodes.nodes:
        if isinstance(node, SourceNode):
            name = formats[node.name].key or config.get(_DEFAULT_SERDE, "")
            is_class = name == config.get(_DEFAULT_SERDE) and "." in name
            if name in PLAIN or is_class:
                topics = [f"{id_}-{topic}" if topic in internal else topic for topic in node.topics]
                found |= dict.fromkeys(topics, name)
    return found
