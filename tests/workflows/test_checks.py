"""The offline checks of the workflow files for pull requests, without cluster and secrets."""

import sys
from pathlib import Path

import pytest

from headwater.cli.new import project
from tests.preloaded import folder_of_shims
from tests.workflows.scripts import Done, Pipeline, clean_environment

pytestmark = pytest.mark.slow

DOCUMENT = """
application: {id: shop}
topology:
  - stream: {topic: orders}
  - groupBy: {key: value.customer, name: by-customer}
  - count: {materialized: counts}
"""
POLICIES = """
version: 1
policies:
  - topicPartitions: {max: 3}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "topologies").mkdir(parents=True)
    (folder / "topologies" / "shop.yaml").write_text(DOCUMENT)
    (folder / "topologies" / "headwater-policies.yaml").write_text(POLICIES)
    (tmp_path / "artifacts").mkdir()
    return folder


def checked(repository: Path, forge: str, **settings: str) -> Done:
    path = f"{folder_of_shims()}:{Path(sys.prefix) / 'bin'}:/usr/bin:/bin"
    variables = {**clean_environment(), "PATH": path}
    pipeline = Pipeline(repository, repository.parent / "artifacts", variables, settings)
    return (
        pipeline.gitlab("headwater:check") if forge == "gitlab" else pipeline.github("preview", "check", {})
    )


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_policies_are_checked_if_a_file_is_configured(repository: Path, forge: str) -> None:
    policies = "topologies/headwater-policies.yaml"
    assert checked(repository, forge).code == 0
    assert checked(repository, forge, SOURCES="orders=4").code == 0
    assert checked(repository, forge, SOURCES="orders=3", POLICIES=policies).code == 0
    broken = checked(repository, forge, SOURCES="orders=4", POLICIES=policies)
    assert broken.code != 0
    assert "PolicyViolated" in broken.text


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_the_first_pull_request_after_an_import_passes(repository: Path, forge: str) -> None:
    """No setting has the counts of the topics that imported applications read; their ids stay."""
    imported = DOCUMENT.replace("id: shop", "id: Customer_360").replace("orders", "clicks")
    (repository / "topologies" / "imported.yaml").write_text(imported)
    template = Path(project.__file__).parent / "files" / "headwater-policies.yaml"
    (repository / "headwater-policies.yaml").write_text(template.read_text())
    done = checked(repository, forge, SOURCES="orders=2", POLICIES="headwater-policies.yaml")
    assert done.code == 0, done.text
    assert "Customer_360" in done.text, "a warning about the id"
