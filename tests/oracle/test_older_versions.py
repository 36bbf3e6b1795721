"""Texts of Kafka Streams 2.5 to 3.6, whose recorded internal topics an import computes."""

from itertools import pairwise
from pathlib import Path

import attrs
import pytest

from headwater.compiler import build_nodes, compile_document
from headwater.compiler.version_differences import (
    COPARTITIONED_WHEN_OPTIMIZED,
    GRACE_DECIDES_RETENTION,
    JOIN_CHANGELOGS_DELETED,
    JOIN_POLICY_OVERRIDDEN,
    OLDER_DIFFERENCES,
    SELF_JOIN_WITH_ONE_STORE,
    SLIDING_RETENTION_COMPUTED,
    TOPIC_READ_TWICE,
    Difference,
)
from headwater.describe import read_description, write_description
from headwater.model.problems import Location, ProblemCode, errors
from headwater.model.topology import Application, DescribedTopology, StoreDetail, TopologyDocument
from headwater.model.versions import OLDER, KafkaStreamsVersion, read_any_version
from tests.oracle.older.record import VERSIONS, Built, build, read_built, recorded

_DAY_MS = 86_400_000
_RECORDED = recorded()
_BUILT = [each for each in _RECORDED if not each.refusal and not each.case.startswith("pattern")]
_SHOWN_BY = {
    COPARTITIONED_WHEN_OPTIMIZED: "join_streams_rekeyed-all",
    TOPIC_READ_TWICE: "same_topic-none",
    GRACE_DECIDES_RETENTION: "tumbling-none",
    JOIN_CHANGELOGS_DELETED: "join_streams-none",
    SELF_JOIN_WITH_ONE_STORE: "self_join-all",
}


def _version(text: str) -> KafkaStreamsVersion:
    version = read_any_version(text)
    assert version is not None
    return version


@pytest.mark.parametrize("built", _BUILT, ids=[f"{each.case}-{each.versions[0]}" for each in _BUILT])
def test_an_imported_text_compiles_to_the_topics_of_its_version(built: Built) -> None:
    nodes, problems = read_description(built.describe)
    assert problems == ()
    assert write_description(nodes) == built.describe
    described = DescribedTopology(nodes, Location("app.txt"), stores=_details(built))
    config = {"topology.optimization": built.case.rpartition("-")[2]}
    for version in (_version(built.versions[0]), _version(built.versions[-1])):
        application = Application("app", Location("app.txt"), config=config, kafka_streams=version)
        document = TopologyDocument(application, described=described)
        compiled = compile_document(document, {"a": 3, "b": 3, "p1": 3})
        assert errors(compiled.problems) == ()
        assert {topic.name: dict(topic.config) for topic in compiled.internal_topics} == built.topics


def _details(built: Built) -> dict[str, StoreDetail]:
    """Return the kinds and retentions that an import asks for."""
    nodes = read_description(built.describe)[0]
    plain = TopologyDocument(
        Application("app", Location("")), described=DescribedTopology(nodes, Location(""))
    )
    found = {}
    for problem in errors(build_nodes(plain).problems):
        assert problem.code is ProblemCode.MISSING_DETAIL
        assert problem.node is not None
        config = built.topics.get(f"app-{problem.node}-changelog", {})
        retention = config.get("retention.ms")
        kind = "windowed" if retention else "keyValue"
        overrides = (
            {"cleanup.policy": "delete"}
            if problem.node == "counts" and built.case.startswith("count_o")
            else {}
        )
        found[problem.node] = StoreDetail(
            kind if problem.found == "no kind" else None,
            int(retention) - _DAY_MS if retention else None,
            overrides=overrides,
        )
    return found


@pytest.mark.parametrize("difference", _SHOWN_BY, ids=lambda each: each.name)
def test_each_difference_is_between_recorded_neighbors(difference: Difference) -> None:
    ends = [_version(each.versions[-1]) for each in _RECORDED if each.case == _SHOWN_BY[difference]]
    changes = [end for end in ends[:-1] if not difference.is_in(end)]
    assert changes
    following = next(version for version in map(_version, VERSIONS) if version > changes[-1])
    assert difference.is_in(following)
    assert not any(difference.is_in(version) for version in map(_version, VERSIONS) if version <= changes[-1])


def test_each_change_that_was_recorded_is_a_difference() -> None:
    named = set(OLDER_DIFFERENCES)
    for before, after in pairwise(_RECORDED):
        if before.case == after.case:
            old, new = _version(before.versions[-1]), _version(after.versions[0])
            assert any(each.is_in(new) and not each.is_in(old) for each in named), (before.case, new)


def test_the_differences_are_in_the_order_of_versions() -> None:
    assert sorted(OLDER_DIFFERENCES, key=lambda each: each.since[0]) == list(OLDER_DIFFERENCES)
    assert set(OLDER_DIFFERENCES) == {*_SHOWN_BY, SLIDING_RETENTION_COMPUTED, JOIN_POLICY_OVERRIDDEN}


@pytest.mark.soak
@pytest.mark.oracle
@pytest.mark.timeout(0)
def test_the_record_is_what_each_version_builds() -> None:
    by_version = {(built.case, version): built for built in _RECORDED for version in built.versions}
    for version in map(str, OLDER):
        for case, given in build(version).items():
            built = read_built(case, version, given)
            if built is not None:
                assert attrs.evolve(by_version[case, version], versions=(version,)) == built


def test_the_page_of_versions_has_each_older_difference() -> None:
    page = (Path(__file__).parents[2] / "docs" / "versions.md").read_text(encoding="utf-8")
    for difference in OLDER_DIFFERENCES:
        assert f"| {difference.since_text} |" in page
        assert f"| {difference.source} |" in page
