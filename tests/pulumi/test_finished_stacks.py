"""A copy of a finished stack is the same as a stack on which `up` has run, except for names and ids."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from headwater.toolchain import PulumiToolchain
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import Deployment, make_deployment
from tests.pulumi.finished_stacks import FinishedStacks, left_by_up

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

_CONFIG = {"internal.topics.setup": "manual"}
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OF_A_RUN = {"created", "modified", "time", "sourcePosition", "stackTrace"}
"""What the state has of the run itself: times, and the files of the program, relative to the stack."""


@pytest.fixture
def make(
    tmp_path: Path,
    pulumi_toolchain: PulumiToolchain,
    cluster: Cluster,
    unique: Callable[[str], str],
    finished_stacks: FinishedStacks,
) -> Callable[[str], Deployment]:
    return lambda name: make_deployment(
        tmp_path / name, pulumi_toolchain, cluster, unique, finished=finished_stacks
    )


@pytest.mark.every_broker
def test_a_copy_is_what_up_leaves(make: Callable[[str], Deployment]) -> None:
    first, copy, real = make("first"), make("copy"), make("real")
    first.set_up(_CONFIG)
    copy.set_up(_CONFIG)
    real.declare(_CONFIG)
    real.up()
    assert _left(copy) == _left(real)
    assert _configs(copy) == _configs(real)
    ids = [copy.cluster.topic_id(name) for name in (*first.topics, *copy.topics)]
    assert len(set(ids)) == len(ids)
    copy.is_clean()


def _left(deployment: Deployment) -> Mapping[str, Any]:
    """Return state and ownership record without what is different in each run."""
    text = _UUID.sub("<uuid>", left_by_up(deployment))

    def kept(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = {key: value for key, value in pairs if key not in _OF_A_RUN}
        if settings := found.get("settings"):  # the digest of the topology depends on its names
            assert re.fullmatch(r"1:sha256:[0-9a-f]{16}", settings.pop("topology"))
        return found

    content: Mapping[str, Any] = json.loads(text, object_pairs_hook=kept)
    types = [resource["type"] for resource in content["state"]["checkpoint"]["latest"]["resources"]]
    assert types.count("kafka:index/topic:Topic") == len(deployment.topics)
    return content


def _configs(deployment: Deployment) -> list[tuple[Mapping[str, str], int | None, frozenset[int]]]:
    """Return settings, partition count and numbers of replicas of each topic."""
    cluster = deployment.cluster
    return [
        (cluster.config(name), cluster.partitions(name), cluster.replicas(name)) for name in deployment.topics
    ]


def test_only_a_new_stack_with_the_usual_settings_gets_a_copy(make: Callable[[str], Deployment]) -> None:
    deployment = make("stack")
    deployment.stack.configure({"ownership": "none"})
    with pytest.raises(AssertionError, match="other settings"):
        deployment.set_up(_CONFIG)
    deployment.stack.configure({"ownership": None})
    deployment.set_up(_CONFIG)
    with pytest.raises(AssertionError, match="only the first `up`"):
        deployment.set_up(_CONFIG)
