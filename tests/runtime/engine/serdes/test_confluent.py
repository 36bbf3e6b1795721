"""Protobuf values against Confluent's own serializers, whose packages are installed for this test."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from headwater_spark.engine.serdes import plain_serde
from headwater_spark.engine.serdes.plain import Plain
from headwater_spark.worker.protobuf_schemas import compile_schema
from tests.runtime.engine.serdes.test_protobuf import NAME, PROTO

pytestmark = pytest.mark.soak  # it asks the package index

_PROGRAM = Path(__file__).with_name("confluent_program.py")
_CASES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("shop.Order", {}),
    ("shop.Order", {"item": "tea", "count": -1, "note": "", "lines": [{"sku": "a"}, {}], "state": "DONE"}),
    ("shop.Order", {"tags": {"1": "a"}, "cash": b"\xff", "at": {"seconds": 1, "nanos": 2}, "price": 1.5}),
    ("shop.Order", {"by_sku": {"k": {"amount": 2**64 - 1}}, "parent": {"paid": True}, "numbers": [1, -1]}),
    ("shop.Line", {"sku": "a", "amount": 300}),
    ("shop.Outer", {}),
    ("shop.Outer.First", {"x": -7}),
    ("shop.Outer.Second", {}),
    ("shop.Outer.Second.Deep", {"y": 1}),
)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Confluent's client for Python with its serializers, in the versions of this environment."""
    folder = tmp_path_factory.mktemp("confluent")
    wanted = f"confluent-kafka[protobuf,schemaregistry]=={version('confluent-kafka')}"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "--target", str(folder), wanted, f"protobuf=={version('protobuf')}"], check=True, timeout=600
    )
    return folder


@pytest.mark.timeout(900)
def test_confluents_serializers_write_the_same_bytes_and_read_ours(packages: Path) -> None:
    schema = compile_schema(PROTO)
    registered = json.dumps({"id": 1, "schema": schema})

    def own(message: str) -> tuple[Plain, Plain]:
        return plain_serde(f"protobuf:a.proto#{message}", schema), plain_serde(
            f"{NAME}#{message}", registered
        )

    serdes = {message: own(message) for message, _ in _CASES}
    cases = [
        {
            "message": message,
            "payload": serdes[message][0].serialize(value).hex(),
            "framed": serdes[message][1].serialize(value).hex(),
        }
        for message, value in _CASES
    ]
    done = subprocess.run(
        [sys.executable, str(_PROGRAM)],
        input=json.dumps({"schema": schema, "cases": cases}),
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [case["framed"] for case in cases]
