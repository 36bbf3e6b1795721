"""ACLs are declared for a cluster without an authorizer."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.phrases import listed
from headwater.planner.run import Run


def no_authorizer(run: Run) -> Iterator[Problem]:
    """Yield a warning only: the same documents may be used for a development cluster without ACLs."""
    declared = {s.id: acls.at for s in run.active if (acls := s.compiled.application.acls) is not None}
    live = run.snapshot.acls
    if not declared or live is None or live.has_authorizer:
        return
    yield Problem(
        code=ProblemCode.NO_AUTHORIZER,
        summary="The brokers have no authorizer: the declared ACLs are not created.",
        expected="brokers that check ACLs",
        found=f"an empty authorizer.class.name; ACLs are declared for {listed(declared)}",
        why="Every client that can connect to this cluster may read, write and delete everything.",
        fix="On a development cluster this may be intended. Otherwise set `authorizer.class.name` on all "
        "brokers and controllers (KRaft: org.apache.kafka.metadata.authorizer.StandardAuthorizer), set "
        "`super.users` to the administrators, and run `pulumi up` again.",
        location=next(iter(declared.values())),
        severity=Severity.WARNING,
    )
