"""Policies on the command line: read from files, judged offline where no plan does it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from infra.cli.console import ProblemsExit, exit_for
from infra.compiler import compile_documents
from infra.model.compiled import CompiledApplication
from infra.model.policies import Policy
from infra.model.problems import Problem, ProblemsError
from infra.model.topology import Lifecycle, TopologyDocument
from infra.planner.policies import declared, judge_application
from infra.spec.policies import load_policies


def read_policies(files: Sequence[Path]) -> tuple[Policy, ...]:
    """Return the policies; raises `ProblemsExit` when a file is not sound."""
    loaded = load_policies(files)
    if exit_for(loaded.problems):
        raise ProblemsExit(ProblemsError(loaded.problems))
    return loaded.policies


def judged(
    documents: Sequence[TopologyDocument],
    compiled: Sequence[CompiledApplication],
    partitions: Mapping[str, int],
    policies: Sequence[Policy],
) -> Iterator[Problem]:
    """What declared applications break, as far as it shows without a cluster.

    Where source topics have no known count, internal topics have none either, but names and settings.
    """
    if not policies:
        return
    assumed = {name: 1 for each in compiled for name in each.missing_sources} | dict(partitions)
    supposed = compile_documents(documents, assumed)
    for own, other in zip(compiled, supposed, strict=True):
        if own.application.lifecycle is not Lifecycle.RELEASED:
            is_counted = not own.missing_sources
            subject = declared(own if is_counted else other, counts_are_known=is_counted)
            yield from judge_application(subject, policies)


def with_judgments(
    compiled: Sequence[CompiledApplication], problems: Sequence[Problem]
) -> tuple[CompiledApplication, ...]:
    """The applications, each with its own of the problems."""
    return tuple(
        attrs.evolve(
            each,
            problems=(*each.problems, *(p for p in problems if p.application == each.application.id)),
        )
        for each in compiled
    )
