"""An application is retired in two steps. Previews and comments list what will be deleted, before it is."""

import pytest

from headwater.report.plan_comment import plan_comment, read_preview
from tests.pulumi.conftest import Deployment

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]


def test_previews_and_comments_list_what_the_two_steps_of_retiring_delete(deployment: Deployment) -> None:
    sink = f"{deployment.source}-counts"
    topology: list[dict[str, object]] = [
        {"stream": {"topic": deployment.source}},
        {"groupBy": {"key": "value.customer", "name": "by-customer"}},
        {"count": {"materialized": "counts"}},
        {"toStream": None},
        {"to": {"topic": sink}},
    ]
    sinks = {sink: {"partitions": "follow"}}
    deployment.write(topology, topics=sinks)
    deployment.up()
    assert deployment.cluster.partitions(sink) == 4
    deployment.write(topology, topics=sinks, application={"lifecycle": "retired"})
    for step, word in (("step 1 of 2", "retire"), ("step 2 of 2", "delete")):
        shown = deployment.stack.preview("--json").text
        comment = plan_comment(read_preview(shown))
        assert step in comment
        for name in deployment.topics:
            assert any(line.split()[:2] == [word, name] for line in comment.splitlines()), comment
        deployment.settles_at(4, 4)
        done = deployment.up()
        assert step in done.text, str(done)
        if word == "retire":
            assert "nothing is deleted yet" in done.text, str(done)
            deployment.settles_at(4, 4)
            deployment.stack.document(deployment.id, None)
    deployment.settles_at(None, None)
    assert deployment.cluster.partitions(sink) == 4, "only internal topics are deleted"
    deployment.is_clean()
