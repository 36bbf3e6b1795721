"""Reads texts of `Topology#describe()` (facts 3.3)."""

from infra.describe.blocks import split
from infra.describe.lines import lines
from infra.describe.nodes import topology_of
from infra.describe.problems import TextProblems
from infra.model.nodes import NodeTopology
from infra.model.problems import Problem

_LONGEST_TEXT = 8 * 1024 * 1024


def read_description(text: str, file: str = "") -> tuple[NodeTopology, tuple[Problem, ...]]:
    """Return the topology described in `text` and the problems of the text; never raises.

    Log lines, prefixes and Windows line ends around the description are ignored. Equal descriptions count
    once; different ones are a problem. The order of lists is kept, so that `write_description` returns the
    same text. `file` is the location of problems.
    """
    found = read_descriptions(text, file)
    topology, problems = found[0]
    if any((other.name, other.nodes) != (topology.name, topology.nodes) for other, _ in found):
        text_problems = TextProblems(file)
        text_problems.several([each.name for each, _ in found])
        problems = (*problems, *text_problems.found)
    return topology, problems


def read_descriptions(text: str, file: str = "") -> tuple[tuple[NodeTopology, tuple[Problem, ...]], ...]:
    """Return all topologies described in `text`, each with its problems; never raises.

    There is at least one result; without a description it has no nodes. `file` is the location of problems.
    """
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
