"""JVMs with Kafka Streams applications that use the library, one for each version of a module."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from headwater.model.versions import SUPPORTED
from headwater.toolchain.broker.local import LocalBroker
from tests.streams_library.application import TestedApplication
from tests.streams_library.applications import Applications, jvm


def with_versions(*usual: str) -> pytest.MarkDecorator:
    """Run a test with these versions, and with all other versions in the soak tests."""
    return pytest.mark.parametrize(
        "version",
        [
            str(version) if str(version) in usual else pytest.param(str(version), marks=pytest.mark.soak)
            for version in SUPPORTED
        ],
    )


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


@pytest.fixture(name="jvm")
def jvm_of_version(applications_of: Callable[[str], Applications], version: str) -> Applications:
    return applications_of(version)


@pytest.fixture
def application(kafka: LocalBroker, unique: Callable[[str], str]) -> TestedApplication:
    application = TestedApplication(unique("shop"), kafka.bootstrap_servers)
    application.create(application.source, 2)
    application.create(application.sink, 2)
    return application
