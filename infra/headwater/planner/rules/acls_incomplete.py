"""ACLs that an application may need and that its topology does not show."""

from collections.abc import Iterator

from headwater.model.problems import Problem
from headwater.planner.acls.application import incomplete_needs
from headwater.planner.application import ActiveApplication


def acls_incomplete(application: ActiveApplication) -> Iterator[Problem]:
    """Yield warnings, only for applications that declare `acls`."""
    declared = application.compiled.application.acls
    if declared is not None:
        yield from incomplete_needs(application.compiled, declared)
