"""Fixes of documents are followed: the document then has no problem."""

import pytest

from headwater.compiler import compile_documents
from headwater.model.problems import Problem
from headwater.spec import load_text

_APPLICATION = 'application: {id: orders, kafkaStreams: "4.3"}\ntopology:\n'
_TABLE = "  - table: {topic: names, as: table, materialized: names}\n"
_JOIN = "  - join: {with: table, value: left.a}\n  - to: out\n"
_BRANCHES = "branches: [{as: small, where: x < 1}]"
_SMALL = "  - to: {from: small, topic: out}\n"
_FOLLOWED = {
    "a first step without input": (
        "  - filter: {where: value.a > 1}\n  - to: out\n",
        "Begin with a step that reads a topic, such as `stream`.",
        "  - stream: in\n  - filter: {where: value.a > 1}\n  - to: out\n",
    ),
    "only a store before a step": (
        "  - addStateStore: {name: s, kind: keyValue}\n  - to: out\n",
        "Begin with a step that reads a topic, such as `stream`.",
        "  - stream: in\n  - to: out\n",
    ),
    "a step after a sink": (
        "  - stream: in\n  - to: out\n  - filter: {where: x > 1}\n  - to: large\n",
        "Add `from` with the handle of its input, which is the `as` of an earlier step.",
        "  - stream: {topic: in, as: a}\n  - to: out\n  - filter: {from: a, where: x > 1}\n  - to: large\n",
    ),
    "a handle of a later step": (
        f"  - stream: in\n{_JOIN}{_TABLE}",
        "Move the step with `as: table` before this one.",
        f"{_TABLE}  - stream: in\n{_JOIN}",
    ),
    "a handle of a later branch": (
        f"  - stream: {{topic: in, as: all}}\n{_SMALL}  - split: {{from: all, {_BRANCHES}}}\n",
        "Move the step with `as: small` before this one.",
        f"  - stream: in\n  - split: {{{_BRANCHES}}}\n{_SMALL}",
    ),
    "a number in quotes": (
        "  - stream: in\n  - to: out\ntopics: {out: {replicationFactor: '3'}}\n",
        "Remove the quotes.",
        "  - stream: in\n  - to: out\ntopics: {out: {replicationFactor: 3}}\n",
    ),
    "a number in quotes where a word is allowed": (
        "  - stream: in\n  - to: out\ntopics: {out: {partitions: '4'}}\n",
        "Remove the quotes.",
        "  - stream: in\n  - to: out\ntopics: {out: {partitions: 4}}\n",
    ),
    "true in quotes": (
        "  - stream: in\n  - groupByKey:\n  - count: {materialized: {store: a, logging: 'false'}}\n",
        "Remove the quotes.",
        "  - stream: in\n  - groupByKey:\n  - count: {materialized: {store: a, logging: false}}\n",
    ),
    "the name of a store": (
        "  - stream: in\n  - groupByKey:\n  - count: {materialized: {name: a, logging: true}}\n",
        "Write `store`: it is the name of `Materialized.as`.",
        "  - stream: in\n  - groupByKey:\n  - count: {materialized: {store: a, logging: true}}\n",
    ),
}


@pytest.mark.parametrize("name", _FOLLOWED)
def test_a_followed_fix_leaves_no_problem(name: str) -> None:
    wrong, fix, followed = _FOLLOWED[name]
    assert fix in [problem.fix for problem in problems(wrong)]
    assert not problems(followed)


def problems(topology: str) -> list[Problem]:
    loaded = load_text(_APPLICATION + topology, "app.yaml")
    compiled = compile_documents(loaded.documents, {"in": 4, "names": 4, "out": 4, "large": 4})
    return [*loaded.problems, *(problem for each in compiled for problem in each.problems)]
