"""Each application that changes has a message, up to a limit; what ends is always listed."""

import json

from headwater.model.topology import Lifecycle
from headwater.report import application_text
from headwater.report.plan_comment import read_preview
from headwater.report.plan_text import plan_messages
from tests.planner.simulated_cluster import SimulatedCluster, application


def test_each_application_that_changes_has_a_message() -> None:
    kept, new = application(id_="kept"), application(id_="new")
    plan = SimulatedCluster.set_up(kept).plan(kept, new)
    (created,) = [each for each in plan.applications if each.application_id == "new"]
    assert list(plan_messages(plan, {})) == [application_text(plan, created)]


def test_repairs_follow_the_plan_of_their_application() -> None:
    plan = SimulatedCluster().plan(application())
    repair = "  outside Pulumi  orders-counts-changelog  re-created"
    (message,) = plan_messages(plan, {"orders": [repair]})
    assert message.endswith(f"\n{repair}")


def test_after_a_hundred_applications_the_others_are_counted() -> None:
    names = [f"app-{number:03}" for number in range(130)]
    plan = SimulatedCluster().plan(*(application(id_=name) for name in names))
    *listed, last = plan_messages(plan, {})
    assert [message.partition(":")[0] for message in listed] == [f"Plan for {name}" for name in names[:100]]
    assert last == (
        "Plan for 30 applications: 60 to create, 0 unchanged.\n"
        "  … not listed here; `headwater plan` shows them all"
    )


def test_an_application_that_ends_is_listed_after_any_number_of_others() -> None:
    cluster = SimulatedCluster.set_up(application(id_="zoo"))
    new = [application(id_=f"app-{number:03}") for number in range(130)]
    plan = cluster.plan(*new, application(id_="zoo", lifecycle=Lifecycle.RETIRED))
    *_, ending, last = plan_messages(plan, {})
    assert "zoo-counts-changelog" in ending
    assert last.startswith("Plan for 30 applications: ")


def test_a_comment_counts_changes_of_applications_that_are_not_listed() -> None:
    applications = [application(id_=f"app-{number:03}") for number in range(130)]
    cluster = SimulatedCluster.set_up(*applications)
    for each in applications:
        cluster.change(f"{each.application.id}-counts-changelog", config={"cleanup.policy": "delete"})
    messages = plan_messages(cluster.plan(*applications), {})
    diagnostics = [{"severity": "info", "message": message} for message in messages]
    preview = read_preview(json.dumps({"diagnostics": diagnostics}))
    assert (len(preview.texts), preview.reconfigured) == (100, 130)
