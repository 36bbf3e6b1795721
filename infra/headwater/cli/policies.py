"""Policies of the command line: reading the files, and checking documents against them offline."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from headwater.cli.console import ProblemsExit
from headwater.compiler import compile_documents
from headwater.model.compiled import CompiledApplication
from headwater.model.policies import Policy
from headwater.model.problems import Problem, ProblemsError
from headwater.model.topology import Lifecycle, TopologyDocument


def read_policies(files: Sequence[Path]) -> tuple[Policy, ...]:
    """Return the policies of the files.

    Raises:
        ProblemsExit: A file has errors.
    """
    if not files:
        return ()
    from headwater.spec.policies import read_policies as load_all  # noqa: PLC0415 - only for policies

    try:
        return load_all(files)
    except ProblemsError as error:
        raise ProblemsExit(error) from None


def violations(
    documents: Sequence[TopologyDocument],
    compiled: Sequence[CompiledApplication],
    partitions: Mapping[str, int],
    policies: Sequence[Policy],
) -> Iterator[Problem]:
    """Yield the violations that can be found without a cluster.

    If the counts of source topics are not known, only names and settings of internal topics are checked.
    """
    if not policies:
        return
    from headwater.planner.policies import check_application, declared  # noqa: PLC0415 - only for policies

    assumed = {name: 1 for each in compiled for name in each.missing_sources} | dict(partitions)
    with_assumed = compile_documents(documents, assumed)
    for own, other in zip(compiled, with_assumed, strict=True):
        if own.application.lifecycle is not Lifecycle.RELEASED:
            is_counted = not own.missing_sources
            subject = declared(own if is_counted else other, counts_are_known=is_counted)
            yield from check_application(subject, policies)


def with_problems(
    compiled: Sequence[CompiledApplication], problems: Sequence[Problem]
) -> tuple[CompiledApplication, ...]:
    """Return the applications, each with its problems of `problems` added."""
    return tuple(
        attrs.evolve(
            each,
            problems=(*each.problems, *(p for p in problems if p.application == each.application.id)),
        )
        for each in compiled
    )
