"""What an application may need beyond what its topology tells."""

from collections.abc import Iterator

from infra.model.problems import Problem
from infra.planner.acls.application import incomplete_needs
from infra.planner.application import ActiveApplication


def acls_incomplete(application: ActiveApplication) -> Iterator[Problem]:
    """Told only where ACLs are declared: otherwise they are somebody else's business."""
    declared = application.compiled.application.acls
    if declared is not None:
        yield from incomplete_needs(application.compiled, declared)
