"""Golden files: `UPDATE_GOLDEN=1 pytest tests/adoption` rewrites them; read the difference, then commit."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.oracle.kafka_streams import KafkaStreams

_FOLDER = Path(__file__).parent / "golden"


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    def check(name: str, text: str) -> None:
        file = _FOLDER / name
        if "UPDATE_GOLDEN" in os.environ:
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    return check


@pytest.fixture(scope="session")
def kafka_streams() -> Iterator[KafkaStreams]:
    oracle = KafkaStreams()
    yield oracle
    oracle.close()
