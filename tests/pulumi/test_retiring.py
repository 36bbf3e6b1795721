"""The list of what will be deleted comes before the deletion, in previews and in the comment made of them."""

import pytest

from infra.report.plan_comment import plan_comment, read_preview
from tests.pulumi.conftest import World

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]


def test_previews_and_comments_list_what_will_be_deleted(world: World) -> None:
    world.set_up()
    world.declare(lifecycle="retired")
    for step, word in (("step 1 of 2", "retire"), ("step 2 of 2", "delete")):
        shown = world.stack.preview("--json").text
        comment = plan_comment(read_preview(shown))
        assert step in comment
        for name in world.topics:
            assert any(line.split()[:2] == [word, name] for line in comment.splitlines()), comment
        assert world.partitions() == (4, 4)
        world.up()
        if step == "step 1 of 2":
            world.settles_at(4, 4)
            world.stack.document(world.id, None)
    world.settles_at(None, None)
