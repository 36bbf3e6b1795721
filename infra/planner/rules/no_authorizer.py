"""ACLs are declared for a cluster that has nothing to check them."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode, Severity
from infra.planner.run import Run
from infra.planner.wording import listed


def no_authorizer(run: Run) -> Iterator[Problem]:
    """A warning: the same documents serve a development cluster that lets everybody do everything."""
    declared = {s.id: acls.at for s in run.active if (acls := s.compiled.application.acls) is not None}
    live = run.snapshot.acls
    if not declared or live is None or live.has_authorizer:
        return
    yield Problem(
        code=ProblemCode.NO_AUTHORIZER,
        summary="The brokers have no authorizer: the declared ACLs are not set up.",
        expected="brokers that check ACLs",
        found=f"an empty authorizer.class.name; ACLs are declared for {listed(declared)}",
        why="Everybody who reaches this cluster may read, write and delete everything.",
        fix="On a cluster for development this may be meant. Otherwise set `authorizer.class.name` on all "
        "brokers and controllers (KRaft: org.apache.kafka.metadata.authorizer.StandardAuthorizer), with "
        "`super.users` for those who administer it, and run again.",
        location=next(iter(declared.values())),
        severity=Severity.WARNING,
    )
