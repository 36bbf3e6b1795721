"""PURE. What an edit of a topology does to its state, its records in flight and its committed offsets.

Kafka Streams finds internal topics by their names only. So what an application keeps follows from the exact
names, formats and partition counts of the topology before and after the edit.
"""

from headwater.planner.edits.find import find_edit, with_same_versions
from headwater.planner.edits.observed import find_edit_since_setup
from headwater.planner.edits.topologies import Topologies, Topology, compile_topologies
from headwater.planner.edits.values import (
    ApplicationEdit,
    Edit,
    NameLine,
    OperatorEdit,
    SettingEdit,
    TopicEdit,
    Verdict,
)

__all__ = [
    "ApplicationEdit",
    "Edit",
    "NameLine",
    "OperatorEdit",
    "SettingEdit",
    "TopicEdit",
    "Topologies",
    "Topology",
    "Verdict",
    "compile_topologies",
    "find_edit",
    "find_edit_since_setup",
    "with_same_versions",
]
