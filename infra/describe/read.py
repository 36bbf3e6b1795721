"""Reads `Topology#describe()` texts of running applications (facts 3.3)."""

from infra.describe.blocks import split
from infra.describe.lines import lines
from infra.describe.nodes import topology_of
from infra.describe.problems import TextProblems
from infra.model.nodes import NodeTopology
from infra.model.problems import Problem

_LONGEST_TEXT = 8 * 1024 * 1024


def read_description(text: str, file: str = "") -> tuple[NodeTopology, tuple[Problem, ...]]:
    """The one topology described in `text`, with what is wrong with the text. Never raises.

    What surrounds the description (log lines, prefixes, Windows line ends) is passed over; a description that
    stands there twice is read once. Lists may be in any order: it is kept, so that writing gives the same
    text back.
    """
    found = read_descriptions(text, file)
    topology, problems = found[0]
    if any((other.name, other.nodes) != (topology.name, topology.nodes) for other, _ in found):
        text_problems = TextProblems(file)
        text_problems.several([each.name for each, _ in found])
        problems = (*problems, *text_problems.found)
    return topology, problems


def read_descriptions(text: str, file: str = "") -> tuple[tuple[NodeTopology, tuple[Problem, ...]], ...]:
    """Every topology described in `text`, at least one; without nodes if there is none."""
    problems = TextProblems(file)
    if len(text) > _LONGEST_TEXT:
        problems.too_large(len(text), _LONGEST_TEXT)
        return ((NodeTopology(()), problems.found),)
    descriptions = split(lines(text), file)
    if not descriptions:
        problems.nothing()
        return ((NodeTopology(()), problems.found),)
    read = [(topology_of(description), description.problems) for description in descriptions]
    return tuple((topology, found.found) for topology, found in read)
