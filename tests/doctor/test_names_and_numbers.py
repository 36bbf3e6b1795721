"""Numbers at their limits in findings of `headwater doctor`."""

import attrs
import pytest

from headwater.doctor.machine import machine_findings
from headwater.doctor.permissions import PermissionFacts, Purpose, Right, permission_findings
from headwater.doctor.stack import PolicyFacts, policy_findings
from tests.doctor.test_texts import MACHINE


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (1, "topic orders-0."),
        (3, "topics orders-0, orders-1, orders-2."),
        (4, "topics orders-0, orders-1, orders-2 and 1 more."),
        (9, "topics orders-0, orders-1, orders-2 and 6 more."),
    ],
)
def test_the_first_three_denied_topics_are_named(number: int, shown: str) -> None:
    names = [f"orders-{each}" for each in reversed(range(number))]
    facts = PermissionFacts(purpose=Purpose.PLAN, denied={Right.DESCRIBE: names})
    found = [finding.text for finding in permission_findings(facts) if finding.check == Right.DESCRIBE.value]
    assert found == [f"The brokers deny Describe on {shown}"]


@pytest.mark.parametrize("is_visible", [False, True])
def test_a_plugin_that_is_not_installed_is_in_no_cache(*, is_visible: bool) -> None:
    facts = attrs.evolve(MACHINE, plugin=None, plugin_is_visible=is_visible)
    [text] = [finding.text for finding in machine_findings(facts) if finding.check == "kafka-plugin"]
    assert text == "The Kafka plugin 3.13.3 of Pulumi is not installed."


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1 policy or limit is followed"), (2, "2 policies and limits are followed")],
)
def test_followed_policies_are_counted(number: int, text: str) -> None:
    assert [finding.text for finding in policy_findings(PolicyFacts(policies=number))] == [text]
