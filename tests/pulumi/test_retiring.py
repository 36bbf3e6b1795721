"""Previews and comments list the topics that will be deleted, before the deletion."""

import pytest

from headwater.report.plan_comment import plan_comment, read_preview
from tests.pulumi.conftest import Deployment

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]


def test_previews_and_comments_list_what_will_be_deleted(deployment: Deployment) -> None:
    deployment.set_up()
    deployment.declare(lifecycle="retired")
    for step, word in (("step 1 of 2", "retire"), ("step 2 of 2", "delete")):
        shown = deployment.stack.preview("--json").text
        comment = plan_comment(read_preview(shown))
        assert step in comment
        for name in deployment.topics:
            assert any(line.split()[:2] == [word, name] for line in comment.splitlines()), comment
        assert deployment.partitions() == (4, 4)
        deployment.up()
        if step == "step 1 of 2":
            deployment.settles_at(4, 4)
            deployment.stack.document(deployment.id, None)
    deployment.settles_at(None, None)
