"""Names with an index that changed because operators were added: which old and new names are pairs."""

from collections.abc import Iterable

from headwater.compiler.renumbering import (
    Renumbering,
    find_renumberings,
    origin_digests,
    renumbering_problems,
)
from headwater.model.problems import ProblemCode, Severity
from tests.compiler.applications import compiled


def pairs(old: Iterable[str], new: Iterable[str]) -> tuple[Renumbering, ...]:
    """Return the pairs of names with unknown origins."""
    return find_renumberings(dict.fromkeys(old, ""), dict.fromkeys(new, ""))


STORE = "app-KSTREAM-AGGREGATE-STATE-STORE-{:010d}-{}"


def test_a_shifted_index_is_paired() -> None:
    old = [STORE.format(2, "changelog"), STORE.format(2, "repartition"), "app-named-changelog"]
    new = [STORE.format(3, "changelog"), STORE.format(3, "repartition"), "app-named-changelog"]
    assert pairs(old, new) == (Renumbering(old[0], new[0]), Renumbering(old[1], new[1]))


def test_unchanged_names_are_not_paired() -> None:
    same = [STORE.format(2, "changelog")]
    assert pairs(same, same) == ()
    assert pairs(same, ["app-KSTREAM-REDUCE-STATE-STORE-0000000002-changelog"]) == ()


def test_several_are_paired_in_order() -> None:
    old = [STORE.format(index, "changelog") for index in (2, 7, 30)]
    new = [STORE.format(index, "changelog") for index in (4, 9, 32)]
    assert [(p.old, p.new) for p in pairs(old, new)] == list(zip(old, new, strict=True))


def test_with_one_more_name_most_have_the_same_shift() -> None:
    old = [STORE.format(index, "changelog") for index in (10, 20)]
    new = [STORE.format(index, "changelog") for index in (3, 12, 22)]
    assert [(p.old, p.new) for p in pairs(old, new)] == [(old[0], new[1]), (old[1], new[2])]


def test_digits_of_the_application_id_do_not_count() -> None:
    old, new = "a-1234567890-KSTREAM-X-0000000001-changelog", "a-1234567890-KSTREAM-X-0000000002-changelog"
    assert pairs([old], [new]) == (Renumbering(old, new),)


TOPOLOGY = "topology: [{stream: {topic: in}}, %s{groupBy: {}}, {count: {}}]"


def test_an_operator_added_at_the_start_is_reported_with_both_names() -> None:
    before = compiled(TOPOLOGY % "", {"in": 1})
    after = compiled(TOPOLOGY % "{filter: {}}, ", {"in": 1})
    problems = renumbering_problems(origin_digests(before), after)
    assert [(p.expected, p.found) for p in problems] == [
        (STORE.format(2, "changelog"), STORE.format(3, "changelog")),
        (STORE.format(2, "repartition"), STORE.format(3, "repartition")),
    ]
    assert {(p.code, p.severity) for p in problems} == {(ProblemCode.RENUMBERED, Severity.WARNING)}


def test_an_unchanged_topology_has_no_problem() -> None:
    application = compiled(TOPOLOGY % "", {"in": 1})
    assert renumbering_problems(origin_digests(application), application) == ()


def chain(source: str) -> str:
    return f"{{stream: {{topic: {source}}}}}, {{groupBy: {{}}}}, {{count: {{}}}}"


def test_a_name_that_another_operator_used_is_reported() -> None:
    """The topic has the state of another operator, which is worse than no state."""
    counts = dict.fromkeys("abc", 1)
    before = compiled(f"topology: [{chain('a')}, {chain('b')}]", counts)
    after = compiled(f"topology: [{chain('c')}, {chain('a')}, {chain('b')}]", counts)
    reported = {p.expected: p.found for p in renumbering_problems(origin_digests(before), after)}
    assert reported == {
        STORE.format(index, kind): STORE.format(index + 7, kind)
        for index in (2, 9)
        for kind in ("changelog", "repartition")
    }
    taken_over = {
        p.found for p in renumbering_problems(origin_digests(before), after) if "another operator" in p.why
    }
    assert taken_over == {STORE.format(9, "changelog"), STORE.format(9, "repartition")}


def test_an_operator_added_at_the_end_shifts_no_index() -> None:
    counts = dict.fromkeys("abc", 1)
    before = compiled(f"topology: [{chain('a')}, {chain('b')}]", counts)
    after = compiled(f"topology: [{chain('a')}, {chain('b')}, {chain('c')}]", counts)
    assert renumbering_problems(origin_digests(before), after) == ()


def test_a_changed_source_keeps_the_pair() -> None:
    before = compiled(TOPOLOGY % "", {"in": 1})
    after = compiled((TOPOLOGY % "{filter: {}}, ").replace("in}", "other}"), {"other": 1})
    assert len(renumbering_problems(origin_digests(before), after)) == 2
