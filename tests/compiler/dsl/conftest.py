"""Golden files: `UPDATE_GOLDEN=1 pytest tests/compiler/dsl` rewrites them; read what changed, then commit."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.oracle.kafka_streams import KafkaStreams


@pytest.fixture
def golden() -> Callable[[Path, str], None]:
    def check(file: Path, text: str) -> None:
        if "UPDATE_GOLDEN" in os.environ:
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    return check


@pytest.fixture(scope="session")
def kafka_streams() -> Iterator[KafkaStreams]:
    oracle = KafkaStreams()
    yield oracle
    oracle.close()
