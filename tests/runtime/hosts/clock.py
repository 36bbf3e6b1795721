"""A library with which the programs of a host read a shifted wall clock (`clock.c`)."""

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

_SOURCE = Path(__file__).with_name("clock.c")
_FILE = "clock"
_NANOSECONDS = 1_000_000_000


def build_library(folder: Path) -> Path | None:
    """Compile the library into `folder`; return None if there is no compiler of C."""
    if (compiler := shutil.which("cc")) is None:
        return None
    library = folder / "clock.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(_SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return library


def create_clock(files: Path) -> None:
    """Create the clock of the host whose disk has these files, if it has none."""
    if not (files / _FILE).exists():
        (files / _FILE).write_bytes(bytes(8))


def shift_clock(files: Path, seconds: int) -> None:
    """Shift the clock of a host, for programs that run and that start later."""
    with (files / _FILE).open("r+b") as file:
        file.write(struct.pack("q", seconds * _NANOSECONDS))


def clock_environment(library: Path, disk: Path) -> Mapping[str, str]:
    """Return the variables of programs that use the clock; `disk` is the disk as the host sees it."""
    return {"LD_PRELOAD": str(library), "HEADWATER_CLOCK": str(disk / _FILE)}
