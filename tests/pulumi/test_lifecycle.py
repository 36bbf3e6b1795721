"""From the first `up` on: what the stack is clean after."""

import pytest

from tests.pulumi.conftest import World
from tests.pulumi.driver import changes

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

MANUAL = {"internal.topics.setup": "manual"}


def test_first_up_creates_and_a_second_one_does_nothing(world: World) -> None:
    world.declare(MANUAL)
    preview = world.stack.preview()
    assert preview.succeeded, preview
    assert world.partitions() == (None, None)
    up = world.stack.up()
    assert up.succeeded, up
    print(preview)
    print(up)
    assert world.partitions() == (4, 4)
    world.is_clean()
    print(world.stack.up())
