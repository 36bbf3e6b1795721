"""Compares applications before and after an edit of their documents."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from headwater.model.cluster import ClusterSnapshot
from headwater.model.problems import Problem, ProblemCode, errors
from headwater.model.topology import Application, Lifecycle, TopologyDocument
from headwater.planner.edits.application import (
    edit_remarks,
    edit_steps,
    find_obstacle,
    is_known,
    new_group_is_needed,
)
from headwater.planner.edits.edited_operators import calls_without_effect, edited_operators
from headwater.planner.edits.edited_stores import edited_stores
from headwater.planner.edits.matching import Sides
from headwater.planner.edits.names import lines_to_keep, with_instruction
from headwater.planner.edits.observed import observed_edit
from headwater.planner.edits.partitioners import joins_of_other_partitioners
from headwater.planner.edits.settings import edited_settings
from headwater.planner.edits.topologies import Topologies, Topology, as_described
from headwater.planner.edits.values import ApplicationEdit, Edit
from headwater.planner.edits.verdicts import topic_edits


def find_edit(
    before: Topologies,
    after: Topologies,
    *,
    snapshot: ClusterSnapshot | None = None,
    assumed: Iterable[str] = (),
) -> Edit:
    """Return what an edit does to each application; raises nothing.

    Applications are compared by their id, by `renamedFrom`, or if each side has only one.

    Args:
        before: the documents before the edit.
        after: the documents after it, compiled with the same partition counts.
        snapshot: the cluster, if it was read: topics that do not exist have no data to lose.
        assumed: source topics whose partition count is not known.
    """
    pairs = dict(_paired_ids(_active_of(before), _active_of(after)))
    problems = [
        problem
        for ids in pairs.items()
        for problem in _refusal_problems(before.by_id[ids[0]], after.by_id[ids[1]])
    ]
    refused = {problem.application for problem in problems}
    return Edit(
        applications=tuple(
            _application_edit(before.by_id[old], after.by_id[new], after, snapshot)
            for old, new in pairs.items()
            if not {old, new} & refused
        ),
        added=tuple(sorted(_active_of(after).keys() - set(pairs.values()))),
        removed=tuple(sorted(_active_of(before).keys() - set(pairs))),
        problems=tuple(problems),
        assumed=tuple(sorted(assumed)),
        cluster_id=snapshot.cluster_id if snapshot is not None else None,
    )


def with_same_versions(
    before: Sequence[TopologyDocument], after: Sequence[TopologyDocument]
) -> tuple[Sequence[TopologyDocument], Sequence[TopologyDocument]]:
    """Return both sides, with the same version where only one side of an application names one.

    A text, or a document that names no version yet, does not say that the version changes.
    """
    old_of, new_of = (_active_applications(each.application for each in side) for side in (before, after))
    new_ids = dict(_paired_ids(old_of, new_of))
    old_ids = {new: old for old, new in new_ids.items()}

    def same(document: TopologyDocument, other: Application | None) -> TopologyDocument:
        application = document.application
        if other is None or application.names_version or not other.names_version:
            return document
        return attrs.evolve(
            document, application=attrs.evolve(application, kafka_streams=other.kafka_streams)
        )

    return (
        [same(each, new_of.get(new_ids.get(each.application.id, ""))) for each in before],
        [same(each, old_of.get(old_ids.get(each.application.id, ""))) for each in after],
    )


def _active_applications(applications: Iterable[Application]) -> Mapping[str, Application]:
    return {each.id: each for each in applications if each.lifecycle is Lifecycle.ACTIVE}


def _active_of(side: Topologies) -> Mapping[str, Application]:
    return _active_applications(topology.application for topology in side.by_id.values())


def _paired_ids(
    before: Mapping[str, Application], after: Mapping[str, Application]
) -> Iterator[tuple[str, str]]:
    """Yield the ids before and afterwards of each application that both sides have."""
    old, new = set(before), tuple(after)
    waiting = []
    for id_ in new:
        former = after[id_].renamed_from
        if id_ in old:
            yield id_, id_
        elif former in old and former not in new:
            yield str(former), id_
        else:
            waiting.append(id_)
    if len(old) == len(new) == len(waiting) == 1:
        yield old.pop(), waiting[0]


def _refusal_problems(old: Topology, new: Topology) -> Iterator[Problem]:
    """Yield the errors of both sides: a topology that is not built has no topics to compare."""
    found = dict.fromkeys((*errors(old.compiled.problems), *errors(new.compiled.problems)))
    for problem in found:
        # What a text of `Topology#describe()` does not show of a store is in the verdict of the store.
        if problem.code is not ProblemCode.MISSING_DETAIL:
            yield problem.located(application=new.id, location=new.application.at)


def _application_edit(
    old: Topology, new: Topology, after: Topologies, snapshot: ClusterSnapshot | None
) -> ApplicationEdit:
    settings = edited_settings(old.document, new.document)
    if old.document.observed is not None or new.document.observed is not None:
        return attrs.evolve(observed_edit(old, new, snapshot), settings=settings)
    is_half_described = old.document.has_calls is not new.document.has_calls

    def shown(topology: Topology) -> Topology:
        return as_described(topology) if is_half_described else topology

    old, new = shown(old), shown(new)
    sides = Sides(old, new, snapshot)
    topics = topic_edits(sides)
    lines, still_lost = (
        lines_to_keep(sides, topics, lambda document: shown(after.with_document(document)))
        if new.document.has_calls
        else ((), ())
    )
    topics = tuple(with_instruction(sides, topic, lines, still_lost) for topic in topics)
    why = find_obstacle(sides, topics)
    needs_new_group = new_group_is_needed(sides)
    operators = (
        *edited_operators(old, new, topics),
        *edited_stores(sides),
        *joins_of_other_partitioners(new, sides.partitioner_changes),
    )
    return ApplicationEdit(
        id=new.id,
        former_id=None if old.id == new.id else old.id,
        before=old.application.kafka_streams,
        after=new.application.kafka_streams,
        topics=topics,
        operators=operators,
        settings=settings,
        obstacle=why,
        is_known=is_known(sides),
        needs_new_group=needs_new_group,
        lines=lines,
        still_lost=still_lost,
        remarks=(
            *edit_remarks(sides, topics, needs_new_group=needs_new_group),
            *calls_without_effect(old.document, new.document, topics, operators),
        ),
        steps=tuple(edit_steps(sides, topics, lines, why, needs_new_group=needs_new_group)),
        location=new.application.at,
    )
