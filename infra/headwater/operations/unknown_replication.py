"""Pulumi's provider cannot create topics with the brokers' default replication factor if it is not known."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode
from headwater.planner import ActionKind, Plan


def unknown_replication(planned: Plan) -> Iterator[Problem]:
    """Yield a problem for each application that depends on the brokers' unknown default."""
    for application in planned.applications:
        new = [a for a in application.actions if a.live is None and a.replication_factor < 1]
        if any(action.kind in (ActionKind.CREATE, ActionKind.RECREATE) for action in new):
            yield Problem(
                code=ProblemCode.REPLICATION_FACTOR,
                summary=f"{application.application_id} uses the brokers' default replication factor, "
                "which is not known.",
                application=application.application_id,
                expected="`replication.factor`, or permission to read the brokers' "
                "`default.replication.factor`",
                found="neither",
                why="Pulumi's Kafka provider can only create topics with an explicit replication factor.",
                fix="Set `replication.factor` in the application's config, or grant the user DescribeConfigs "
                "on the cluster.",
            )
