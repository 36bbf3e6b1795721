"""The coordinator of a streams group knows which topics are internal, so no name decides it."""

import attrs

from headwater.model.cluster import GroupFacts, GroupType, Survey
from headwater.model.streams_groups import GroupSubtopology, GroupTopic, StreamsGroup
from headwater.planner.adoption import recognize_applications
from tests.planner.test_adoption import owners, reasons, survey, topic

GROUP = StreamsGroup(
    id="app",
    state="Empty",
    topology_epoch=0,
    subtopologies=(
        GroupSubtopology(id="0", sources=("in",), repartition_sinks=("app-eu-by-repartition",)),
        GroupSubtopology(
            id="1",
            sources=("app-own-repartition",),
            repartition_sources=(GroupTopic(name="app-eu-by-repartition"),),
            changelogs=(GroupTopic(name="app-eu-counts-changelog"),),
        ),
    ),
)


def surveyed() -> Survey:
    found = survey(
        topic("in", 4, {}),
        topic("app-eu-by-repartition", 4, {}),
        topic("app-eu-counts-changelog", 4, {}),
        topic("app-own-repartition", 2, {}),
        GroupFacts(id="app", type=GroupType.STREAMS, state="Empty"),
        GroupFacts(id="app-eu", protocol_type="consumer", assignor="stream", members=1),
    )
    return attrs.evolve(found, streams_groups={"app": GROUP})


def test_topics_belong_to_the_group_that_has_them() -> None:
    """Their names also begin with the id of another application, and they have no settings."""
    found = recognize_applications(surveyed())
    assert owners(found) == {"app": ["app-eu-by-repartition", "app-eu-counts-changelog"]}
    assert not found.applications[0].ambiguities


def test_sources_are_those_of_the_topology_without_members() -> None:
    (application,) = recognize_applications(surveyed()).applications
    assert application.sources == {"in": 4, "app-own-repartition": 2}


def test_a_topic_of_a_user_that_the_application_reads_is_skipped() -> None:
    assert "app-own-repartition" in reasons(recognize_applications(surveyed()))
