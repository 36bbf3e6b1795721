"""What each test of this folder does at its end."""

from collections.abc import Iterator

import pytest

from tests.accidents.simulated import discard_killed_runs


@pytest.fixture(autouse=True)
def _discarded() -> Iterator[None]:
    yield
    discard_killed_runs()
