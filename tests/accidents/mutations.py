"""Changes of the product, each of which disables one protection: the search must find what happens then."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest

from headwater.model.records import OwnershipRecord, StackIdentity
from headwater.planner.claims import _claim_during
from headwater.planner.ownership import Ownership
from headwater.planner.plans import ApplicationPlan
from headwater.pulumi import registration
from headwater.pulumi.guard import DeletionCheck
from headwater.pulumi.registration import TopicResource

Mutation = tuple[str, str, Callable[..., Any]]
"""A module, the path of an attribute in it, and what replaces the attribute."""


def _nothing(*_: object, **__: object) -> tuple[()]:
    return ()


def _check_nothing_again(check: DeletionCheck) -> Mapping[str, tuple[str, ...]]:
    return dict.fromkeys(check.owners, ())


def _own_by_id(record: OwnershipRecord, stack: StackIdentity, applications: frozenset[str]) -> bool:
    is_left = not record.is_finished and record.stack.has_same_name(stack)
    return record.stack.id == stack.id or (is_left and record.application_id in applications)


def _still_retired(part: ApplicationPlan, ownership: Ownership) -> OwnershipRecord | None:
    claim, own = _claim_during(part, ownership), ownership.own.get(part.application_id)
    return claim if claim is None or own is None else attrs.evolve(claim, is_retired=own.is_retired)


_released, _registered = registration._released_topic, registration._topic_resource


def _released_without_retaining(*arguments: Any) -> TopicResource:  # noqa: ANN401 - those of the original
    return attrs.evolve(_released(*arguments), retain=False)


def _unprotected(*arguments: Any) -> TopicResource:  # noqa: ANN401 - those of the original
    return attrs.evolve(_registered(*arguments), protect=False, retain=False, guarded=False)


_EVIDENCE, _RULES = "headwater.planner.evidence", "headwater.planner.rules"
MUTATIONS: Mapping[str, Mutation] = {
    "the ownership record is not asked": (f"{_EVIDENCE}.deletion", "_claim_obstacles", _nothing),
    "readers do not matter": (f"{_EVIDENCE}.topics", "Evidence._readers", _nothing),
    "records that are not readable do not matter": ("headwater.kafka.evidence", "_phrases_of", _nothing),
    "the evidence is not read again": (
        "headwater.pulumi.guard",
        "DeletionCheck.obstacles",
        _check_nothing_again,
    ),
    "a plan does not compare the ids of retired topics": (f"{_RULES}.topics", "_replaced_topics", _nothing),
    "other stacks do not matter": ("headwater.planner.ownership", "Ownership.conflicts", _nothing),
    "a stack is recognized by its id alone": ("headwater.planner.ownership", "_is_own", _own_by_id),
    "a claim stays retired": ("headwater.planner.claims", "_claim_during", _still_retired),
    "a released topic is not retained": (
        "headwater.pulumi.registration",
        "_released_topic",
        _released_without_retaining,
    ),
    "no topic is protected, retained or guarded": (
        "headwater.pulumi.registration",
        "_topic_resource",
        _unprotected,
    ),
    "adoption needs no evidence": (f"{_RULES}.ownership", "_adoption_problems", _nothing),
    "removed records are not reported": (f"{_RULES}.topics", "_chosen_changes", _nothing),
    "retention is not compared": ("headwater.planner.settings", "_Kept.removes_more", lambda *_: False),
}


def mutate(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change the product until the end of the test."""
    module, path, replaced = MUTATIONS[name]
    target: Any = importlib.import_module(module)
    *owners, attribute = path.split(".")
    for owner in owners:
        target = getattr(target, owner)
    monkeypatch.setattr(target, attribute, replaced)
