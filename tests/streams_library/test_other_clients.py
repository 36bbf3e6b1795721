"""A running application, the agent and `pulumi up` expand the same topics at the same time."""

import re
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from headwater.agent.documents import DocumentFiles
from headwater.agent.state import Phase
from headwater.cli.main import main
from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker.local import LocalBroker
from tests.agent.running import await_true, running, settings
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import make_deployment
from tests.streams_library.application import TestedApplication
from tests.streams_library.applications import NEWEST, SUPPLIER, jvm

pytestmark = [pytest.mark.pulumi, pytest.mark.broker, pytest.mark.oracle, pytest.mark.slow]

_CONFIG = {
    "default.client.supplier": SUPPLIER,
    "internal.topics.setup": "manual",
    "partition.autoscaling.enabled": "true",
}

_OTHER_TOPICS = "The running application reads other topics than the document."
_EXPANDERS = ("agent agent-1 on ", "its client supplier, an interrupted run")


@pytest.mark.parametrize("counts", [(4,), pytest.param((4, 5, 6), marks=pytest.mark.soak)])
def test_no_client_adds_too_many_partitions_and_the_next_preview_is_clean(
    tmp_path: Path,
    pulumi_toolchain: PulumiToolchain,
    kafka: LocalBroker,
    unique: Callable[[str], str],
    counts: tuple[int, ...],
) -> None:
    deployment = make_deployment(
        tmp_path / "stack", pulumi_toolchain, Cluster(kafka.bootstrap_servers), unique
    )
    # Its topics have the names of the document, so their names do not follow the pattern of other tests.
    application = TestedApplication(deployment.id, kafka.bootstrap_servers)
    deployment.write(
        [
            {"stream": {"topic": application.source}},
            {"groupBy": {"key": "value", "name": "by-value"}},
            {"count": {"materialized": "counts"}},
            {"toStream": None},
            {"to": {"topic": application.sink}},
        ],
        _CONFIG,
        application={"setup": {"allowUnsafeExpansion": True}},
    )
    application.create(application.source, 2)
    application.create(application.sink, 2)
    deployment.up()
    files = DocumentFiles([deployment.stack.folder / "documents"])
    agent = attrs.evolve(settings(kafka.bootstrap_servers, (), unique("agent")), documents=files)
    with jvm(NEWEST, tmp_path / "java") as java, running(agent) as recorder:
        java.start("app", application.topology, application.configs(**_underscored(_CONFIG)))
        java.await_tasks("app", 4)
        await_true(
            lambda: recorder.state.is_recovered and recorder.phase(application.id) is Phase.STEADY,
        )
        documents = deployment.stack.folder / "documents"
        _reads_the_topics_of_the_document(documents, kafka.bootstrap_servers, deployment.id)
        for count in counts:
            up = deployment.stack.start("up", "--yes", "--skip-preview")
            application.expand(application.source, count)
            up.communicate(timeout=120)
            java.await_tasks("app", 2 * count)
            found = application.counts(*application.internal_topics)
            assert found == dict.fromkeys(application.internal_topics, count)
            await_true(lambda: recorder.phase(application.id) is Phase.STEADY)
            if up.returncode != 0:  # another client was faster than Pulumi
                deployment.up()
            deployment.is_clean()
            expanders = re.findall(r"expanded by (.+)", deployment.stack.preview().text)
            assert all(by.startswith(_EXPANDERS) for by in expanders), expanders
            assert application.counts(*application.internal_topics) == found
        assert not [event for event in java.events if event.kind in ("failed", "refused")]
        java.close("app")


def _reads_the_topics_of_the_document(documents: Path, servers: str, id_: str) -> None:
    """Assert that drift compares what the running application subscribes to."""
    (file,) = documents.iterdir()
    other = documents.parent / "other.yaml"
    other.write_text(file.read_text().replace("by-value", "by-name"))
    arguments = ["drift", "--bootstrap-server", servers]
    assert _OTHER_TOPICS not in CliRunner().invoke(main, [*arguments, str(documents)]).output
    different = CliRunner().invoke(main, [*arguments, str(other)]).output
    assert _OTHER_TOPICS in different
    assert f"{id_}-by-name-repartition" in different


def _underscored(config: dict[str, str]) -> dict[str, str]:
    return {name.replace(".", "_"): value for name, value in config.items()}
