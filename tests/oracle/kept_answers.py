"""Answers of the real Kafka Streams that earlier test runs of this machine have received, kept in the cache.

An answer depends on the request and on the program only: the jars, the classes and Java are part of the key.
Most requests of `make test` are the same in each run, and processing them takes minutes of CPU time.
`HEADWATER_LIVE_ORACLE=1`, as in `make fuzz`, sends all requests to the JVM.
"""

import os
import shutil
import time
import zlib
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import attrs

from headwater.toolchain.cache import Cache
from headwater.toolchain.maven_jars import build_of

_PREFIX = "kafka-streams-answers"
_LIVE = "HEADWATER_LIVE_ORACLE"
_DAYS = 14
"""After how long the answers of other programs are deleted."""


@attrs.frozen
class KeptAnswers:
    """One file for each answer, named by its request; several processes may use the folder."""

    folder: Path

    def find(self, request: str) -> str | None:
        with suppress(FileNotFoundError, zlib.error):
            return zlib.decompress(self._file(request).read_bytes()).decode()
        return None

    def keep(self, request: str, answer: str) -> None:
        file = self._file(request)
        file.parent.mkdir(exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_bytes(zlib.compress(answer.encode(), 1))
        draft.rename(file)

    def _file(self, request: str) -> Path:
        name = sha256(request.encode()).hexdigest()
        return self.folder / name[:2] / name[2:]


def kept_answers(java: Path, *programs: Path, cache: Cache | None = None) -> KeptAnswers | None:
    """Return the answers of these programs, whose names contain their fingerprints; None: ask the JVM."""
    if os.environ.get(_LIVE):
        return None
    root = (cache or Cache()).root
    identity = "\n".join((*build_of(java), *(each.name for each in programs)))
    folder = root / f"{_PREFIX}-{sha256(identity.encode()).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    for other in root.glob(f"{_PREFIX}-*"):
        with suppress(FileNotFoundError):
            if time.time() - other.stat().st_mtime > _DAYS * 86_400:
                shutil.rmtree(other, ignore_errors=True)
    return KeptAnswers(folder)
