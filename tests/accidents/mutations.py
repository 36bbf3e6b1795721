"""Changes of the product, each of which disables one protection: the search must find what happens then."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import attrs
import pytest

from headwater.kafka import evidence as broker_evidence
from headwater.model.records import OwnershipRecord, StackIdentity
from headwater.planner import claims, ownership, settings
from headwater.planner.evidence import deletion
from headwater.planner.evidence import topics as topic_evidence
from headwater.planner.ownership import Ownership
from headwater.planner.plans import ApplicationPlan
from headwater.planner.rules import ownership as ownership_rules
from headwater.planner.rules import topics as topic_rules
from headwater.pulumi import registration
from headwater.pulumi.guard import DeletionCheck
from headwater.pulumi.registration import TopicResource

Mutation = tuple[ModuleType | type, str, Callable[..., Any]]
"""A module or class, the name of a function in it, and what replaces the function."""


def _nothing(*_: object, **__: object) -> tuple[()]:
    return ()


def _check_nothing_again(check: DeletionCheck) -> Mapping[str, tuple[str, ...]]:
    return dict.fromkeys(check.owners, ())


def _own_by_id(record: OwnershipRecord, stack: StackIdentity, applications: frozenset[str]) -> bool:
    is_left = not record.is_finished and record.stack.has_same_name(stack)
    return record.stack.id == stack.id or (is_left and record.application_id in applications)


_claimed = claims._claim_during


def _still_retired(part: ApplicationPlan, owners: Ownership) -> OwnershipRecord | None:
    claim, own = _claimed(part, owners), owners.own.get(part.application_id)
    return claim if claim is None or own is None else attrs.evolve(claim, is_retired=own.is_retired)


_released, _registered = registration._released_topic, registration._topic_resource


def _released_without_retaining(*arguments: Any) -> TopicResource:  # noqa: ANN401 - those of the original
    return attrs.evolve(_released(*arguments), retain=False)


def _unprotected(*arguments: Any) -> TopicResource:  # noqa: ANN401 - those of the original
    return attrs.evolve(_registered(*arguments), protect=False, retain=False, guarded=False)


MUTATIONS: Mapping[str, Mutation] = {
    "the ownership record is not asked": (deletion, "_claim_obstacles", _nothing),
    "readers do not matter": (topic_evidence.Evidence, "_readers", _nothing),
    "records that are not readable do not matter": (broker_evidence, "_unread_records", _nothing),
    "the evidence is not read again": (DeletionCheck, "obstacles_by_topic", _check_nothing_again),
    "a plan does not compare the ids of retired topics": (topic_rules, "_replaced_retired_topics", _nothing),
    "other stacks do not matter": (Ownership, "find_conflicts", _nothing),
    "a stack is recognized by its id alone": (ownership, "_is_own", _own_by_id),
    "a claim stays retired": (claims, "_claim_during", _still_retired),
    "a released topic is not retained": (registration, "_released_topic", _released_without_retaining),
    "no topic is protected, retained or guarded": (registration, "_topic_resource", _unprotected),
    "adoption needs no evidence": (ownership_rules, "_adoption_problems", _nothing),
    "removed records are not reported": (topic_rules, "_chosen_changes", _nothing),
    "retention is not compared": (settings._Kept, "removes_more", lambda *_: False),
}


def mutate(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change the product until the end of the test."""
    owner, function, replaced = MUTATIONS[name]
    monkeypatch.setattr(owner, function, replaced)
