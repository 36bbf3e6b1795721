"""Compiles Protobuf schemas with protoc, which the extra `protobuf` installs.

It runs in a process of its own: a schema is a text of others. It reads no file but the schema and Google's
own imports (`google/protobuf/…`).
"""

import base64
import subprocess
import sys
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

_SECONDS = 60
_MODULE = "grpc_tools"
_FILE = "schema.proto"


@lru_cache(maxsize=256)
def compile_schema(text: str) -> str:
    """Return a schema as a `FileDescriptorSet` in Base64, with the files that it imports.

    Raises:
        ValueError: The text is not a Protobuf schema, imports other files, or protoc is not installed.
    """
    if find_spec(_MODULE) is None:
        raise ValueError("Protobuf needs protoc: pip install 'headwater[protobuf]'")
    with TemporaryDirectory(prefix="headwater-protobuf-") as folder:
        source, target = Path(folder, _FILE), Path(folder, "schema.bin")
        try:
            source.write_text(text, encoding="utf-8")
            done = subprocess.run(
                [
                    *(sys.executable, "-P", "-m", f"{_MODULE}.protoc", f"-I{folder}", "--include_imports"),
                    *(f"--descriptor_set_out={target}", _FILE),
                ],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS,
                check=False,
            )
        except (UnicodeEncodeError, subprocess.TimeoutExpired):
            raise ValueError("invalid Protobuf schema: protoc cannot compile it") from None
        if done.returncode or not target.exists():
            raise ValueError(f"invalid Protobuf schema: {_first_fault(done.stderr, folder)}")
        return base64.b64encode(target.read_bytes()).decode()


def _first_fault(output: str, folder: str) -> str:
    """Return the first error of the schema itself, with its line and column."""
    start = f"{folder}/{_FILE}:"
    faults = [line.removeprefix(start) for line in output.splitlines() if line.startswith(start)]
    return faults[0].strip().removesuffix(".") if faults else "protoc failed"
