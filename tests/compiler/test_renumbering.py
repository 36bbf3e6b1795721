from infra.compiler.renumbering import Renumbering, renumbering_problems, renumberings
from infra.model.problems import ProblemCode, Severity
from tests.compiler.applications import compiled

STORE = "app-KSTREAM-AGGREGATE-STATE-STORE-{:010d}-{}"


def test_a_shifted_index_is_paired() -> None:
    old = [STORE.format(2, "changelog"), STORE.format(2, "repartition"), "app-named-changelog"]
    new = [STORE.format(3, "changelog"), STORE.format(3, "repartition"), "app-named-changelog"]
    assert renumberings(old, new) == (Renumbering(old[0], new[0]), Renumbering(old[1], new[1]))


def test_what_stays_is_not_paired() -> None:
    same = [STORE.format(2, "changelog")]
    assert renumberings(same, same) == ()
    assert renumberings(same, ["app-KSTREAM-REDUCE-STATE-STORE-0000000002-changelog"]) == ()


def test_several_are_paired_in_order() -> None:
    old = [STORE.format(index, "changelog") for index in (2, 7, 30)]
    new = [STORE.format(index, "changelog") for index in (4, 9, 32)]
    assert [(p.old, p.new) for p in renumberings(old, new)] == list(zip(old, new, strict=True))


def test_where_one_is_added_most_are_shifted_alike() -> None:
    old = [STORE.format(index, "changelog") for index in (10, 20)]
    new = [STORE.format(index, "changelog") for index in (3, 12, 22)]
    assert [(p.old, p.new) for p in renumberings(old, new)] == [(old[0], new[1]), (old[1], new[2])]


def test_digits_of_the_application_id_do_not_count() -> None:
    old, new = "a-1234567890-KSTREAM-X-0000000001-changelog", "a-1234567890-KSTREAM-X-0000000002-changelog"
    assert renumberings([old], [new]) == (Renumbering(old, new),)


TOPOLOGY = "topology: [{stream: {topic: in}}, %s{groupBy: {}}, {count: {}}]"


def test_an_operator_added_in_front_is_told_with_both_names() -> None:
    before = compiled(TOPOLOGY % "", {"in": 1})
    after = compiled(TOPOLOGY % "{filter: {}}, ", {"in": 1})
    problems = renumbering_problems([topic.name for topic in before.internal_topics], after)
    assert [(p.expected, p.found) for p in problems] == [
        (STORE.format(2, "changelog"), STORE.format(3, "changelog")),
        (STORE.format(2, "repartition"), STORE.format(3, "repartition")),
    ]
    assert {(p.code, p.severity) for p in problems} == {(ProblemCode.RENUMBERED, Severity.WARNING)}


def test_nothing_is_told_of_an_unchanged_topology() -> None:
    application = compiled(TOPOLOGY % "", {"in": 1})
    assert renumbering_problems([topic.name for topic in application.internal_topics], application) == ()
