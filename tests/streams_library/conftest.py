"""JVMs with Kafka Streams applications that use the library, one for each version of a module."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.streams_library.applications import Applications, jvm


@pytest.fixture(scope="module")
def applications_of() -> Iterator[Callable[[str], Applications]]:
    """Return a function that returns the JVM of a version of Kafka Streams, which its first call starts."""
    started: dict[str, Applications] = {}
    with ExitStack() as stack:

        def of(version: str) -> Applications:
            if version not in started:
                folder = Path(stack.enter_context(TemporaryDirectory(prefix="headwater-streams-")))
                started[version] = stack.enter_context(jvm(version, folder))
            return started[version]

        yield of
