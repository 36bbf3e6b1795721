"""The partitioners of the library and of the runtime compute the same partitions, byte for byte.

`UPDATE_GOLDEN=1` writes the vectors from the runtime's partitioners.
"""

import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.model.problems import Location
from headwater_spark.engine.partitioners.static import TaskMigrated, built_in, static_partition
from tests.quick_java import QUICK_PROGRAM
from tests.streams_library.applications import NEWEST, OLDEST, class_path

VECTORS = Path(__file__).parents[1] / "fixtures" / "static_partitioners.tsv"
_CONFIGS = (
    "class initial-hash;initial.partitions 3",
    "class linear-hash;initial.partitions 1",
    "class linear-hash;initial.partitions 3",
    "class key-prefix;table acme=0, globex = 5,a=b=2;initial.partitions 4",
    "class key-prefix;table acme=1;separator é|",
    "class range;bounds g,n,t",
    "class range;bounds ä, é,€,\U0001f600",
    "class initial-hash",
    "class linear-hash;initial.partitions 0",
    "class key-prefix;table acme",
    "class range;bounds n,g",
    "class murmur",
)
_KEYS = (
    "",
    "a",
    "acme:1",
    "acme:",
    "globex:x:y",
    "a=b:1",
    "acmeé|2",
    "g",
    "t",
    "zz",
    "é",
    "€1",
    "\U0001f600",
    "ﬁ",
)
_COUNTS = (1, 2, 3, 4, 5, 6, 7, 12)


def _keys() -> Iterator[bytes]:
    drawn = random.Random(878)  # noqa: S311 - the same keys in each run
    yield from (key.encode() for key in _KEYS)
    yield from (
        b"\xff",
        b"\xe2\x82",
        b"\xed\xa0\x80x",
        b"acme\xc3:1",
        b"\xf0\x9f\x98",
        b"\xc0\x80",
        b"\xf5\x80",
    )
    yield from (drawn.randbytes(length) for length in range(1, 20) for _ in range(2))


def _result(configs: str, key: bytes, count: int) -> str:
    parsed = {
        f"static.partitioner.{name}": value
        for name, _, value in (entry.partition(" ") for entry in configs.split(";"))
    }
    partitioner, problems = built_in(parsed["static.partitioner.class"], parsed, Location("app.yaml"))
    if partitioner is None:
        assert problems
        return "refused"
    try:
        return str(static_partition(partitioner, "t", key, count))
    except TaskMigrated:
        return "expand"
    except KeyError:
        return "unknown prefix"


def _vectors() -> str:
    return "".join(
        f"{configs}\t{key.hex()}\t{count}\t{_result(configs, key, count)}\n"
        for configs in _CONFIGS
        for key in _keys()
        for count in _COUNTS
    )


def test_the_vectors_are_those_of_the_runtime(golden: Callable[[Path, str], None]) -> None:
    golden(VECTORS, _vectors())


@pytest.mark.oracle
@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_library_computes_the_same_partitions(version: str) -> None:
    done = subprocess.run(
        [
            "java",
            *QUICK_PROGRAM,
            "-Dfile.encoding=UTF-8",
            "-cp",
            class_path(version),
            "headwater.streamstest.PartitionVectors",
            VECTORS,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = VECTORS.read_text(encoding="utf-8").splitlines()
    results = done.stdout.splitlines()
    assert len(results) == len(lines)
    assert [
        line for line, result in zip(lines, results, strict=True) if line.rpartition("\t")[2] != result
    ] == []
