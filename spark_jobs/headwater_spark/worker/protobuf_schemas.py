"""Compiles Protobuf schemas with protoc, which the extra `protobuf` installs.

It runs in a process of its own: a schema is a text of others. It reads no file but the schema and Google's
own imports (`google/protobuf/*.proto`).

Confluent's Java serializers may register a map as its entries (`repeated TagsEntry tags`, with a message
`TagsEntry` that has `option map_entry = true`), which protoc refuses. These entries are compiled as messages,
and become entries afterwards.
"""

import base64
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from google.protobuf import descriptor_pb2  # type: ignore[import-untyped]

from headwater_spark.engine.serdes import CompilerUnavailableError

_COMPILER_SECONDS = 60
_MODULE = "grpc_tools"
_FILE = "schema.proto"
_WARNING = re.compile(r"[\d:]* ?warning:")
_ENTRY_NUMBER = 536_870_911
"""The largest number of a field. An entry has no such field, so reserving it changes nothing."""
_ENTRY_OPTION = re.compile(
    r"""(?P<other>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|//[^\n]*|/\*.*?\*/)"""
    r"""|\boption\s+map_entry\s*=\s*true\s*;""",
    re.DOTALL,
)
"""The option of an entry; `other` is a string or a comment, which is not changed."""
_Message = Any


@lru_cache(maxsize=256)
def compile_schema(text: str) -> str:
    """Return a schema as a `FileDescriptorSet` in Base64, with the files that it imports.

    The messages in a message have the order of the text. The entries that protoc adds for maps are last.

    Raises:
        ValueError: The text is not a Protobuf schema, or imports other files.
        CompilerUnavailableError: protoc is not installed, does not finish, or cannot run.
    """
    marked = _ENTRY_OPTION.sub(_mark_entry, text)
    files = descriptor_pb2.FileDescriptorSet.FromString(_run_protoc(marked))
    for message in _all_messages(files.file[-1].message_type):
        if marked != text and any(each.start == _ENTRY_NUMBER for each in message.reserved_range):
            _convert_to_entry(message)
        else:
            _sort_messages(message)
    return base64.b64encode(files.SerializeToString(deterministic=True)).decode()


def _mark_entry(found: re.Match[str]) -> str:
    return found["other"] or f"reserved {_ENTRY_NUMBER};"


def _all_messages(messages: Iterable[_Message]) -> Iterator[_Message]:
    """Yield messages, each before those in it."""
    for message in messages:
        yield message
        yield from _all_messages(message.nested_type)


def _convert_to_entry(message: _Message) -> None:
    del message.reserved_range[:]
    if sorted((each.number, each.name) for each in message.field) != [(1, "key"), (2, "value")]:
        raise ValueError(f"invalid Protobuf schema: {message.name} is not an entry of a map")
    message.options.map_entry = True


def _sort_messages(message: _Message) -> None:
    """Put the entries that protoc added after the messages of the text."""
    messages = sorted(message.nested_type, key=lambda each: each.options.map_entry)
    copies = [descriptor_pb2.DescriptorProto.FromString(each.SerializeToString()) for each in messages]
    del message.nested_type[:]
    message.nested_type.extend(copies)


def _run_protoc(text: str) -> bytes:
    """Return the `FileDescriptorSet` of a schema; raises as `compile_schema`."""
    if find_spec(_MODULE) is None:
        raise CompilerUnavailableError(
            "protoc is not installed: install the wheel with its extra headwater[protobuf]"
        )
    try:
        with TemporaryDirectory(prefix="headwater-protobuf-") as folder:
            source, target = Path(folder, _FILE), Path(folder, "schema.bin")
            source.write_text(text, encoding="utf-8")
            done = subprocess.run(
                [
                    *(sys.executable, "-P", "-m", f"{_MODULE}.protoc", f"-I{folder}", "--include_imports"),
                    *(f"--descriptor_set_out={target}", _FILE),
                ],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_COMPILER_SECONDS,
                check=False,
            )
            if done.returncode == 0:
                return target.read_bytes()
            fault = None if done.returncode < 0 else _first_fault(done.stderr, folder)  # < 0: killed
    except UnicodeEncodeError:
        raise ValueError("invalid Protobuf schema: protoc cannot compile it") from None
    except subprocess.TimeoutExpired:
        raise CompilerUnavailableError(f"protoc did not finish in {_COMPILER_SECONDS} s") from None
    except OSError as error:
        raise CompilerUnavailableError(f"protoc cannot run: {error.strerror}") from None
    if fault is None:
        lines = done.stderr.split("\n")
        reason = next((each.strip() for each in reversed(lines) if each.strip()), f"code {done.returncode}")
        raise CompilerUnavailableError(f"protoc failed: {reason}")
    raise ValueError(f"invalid Protobuf schema: {fault}")


def _first_fault(output: str, folder: str) -> str | None:
    """Return the first error of the schema itself, with its line and column; warnings are none."""
    starts = (f"{folder}/{_FILE}:", f"{_FILE}:")
    for line in output.splitlines():
        for start in starts:
            if line.startswith(start) and not _WARNING.match(line, len(start)):
                return line.removeprefix(start).strip().removesuffix(".")
    return None
