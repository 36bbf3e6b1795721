"""A random search for accidents, and the proof that it finds the ones that it searches for."""

import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.accidents.continuation import settle
from tests.accidents.incidents import ALL
from tests.accidents.ledger import AccidentError
from tests.accidents.machine import Accidents
from tests.accidents.mutations import MUTATIONS, mutate
from tests.accidents.steps import Series
from tests.accidents.world import STACKS, World

T = TypeVar("T")
_MOST_SERIES = 120
_FOUND_BY = {
    "the ownership record is not asked": 2,
    "records that are not readable do not matter": 4,
    "the evidence is not read again": 21,
    "a plan does not compare the ids of retired topics": 7,
    "other stacks do not matter": 6,
    "a stack is recognized by its id alone": 6,
    "a claim stays retired": 8,
    "no topic is protected, retained or guarded": 3,
    "adoption needs no evidence": 3,
    "removed records are not reported": 5,
    "retention is not compared": 3,
}
"""Mutation → the first series that finds it: it is tried before the others, if it is not number 0."""


def test_a_topic_that_no_step_released_stays() -> None:
    search(settings(max_examples=max(3, settings().max_examples // 6), stateful_step_count=25))


@pytest.mark.soak
def test_a_topic_that_no_step_released_stays_in_long_series() -> None:
    search(settings(max_examples=4_000, stateful_step_count=60, derandomize=False, database=None))


@pytest.mark.parametrize("seed", range(2))
def test_steps_of_the_real_series_lose_nothing(seed: int) -> None:
    take_steps(seed)


@pytest.mark.soak
def test_many_steps_of_the_real_series_lose_nothing() -> None:
    for seed in range(2, 1_000):
        take_steps(seed)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_the_changed_function_exists(mutation: str) -> None:
    owner, function, _ = MUTATIONS[mutation]
    assert hasattr(owner, function)


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_the_search_finds_each_accident(mutation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(mutation, monkeypatch)
    with pytest.raises(AccidentError):
        take_many_incidents(dict.fromkeys((_FOUND_BY.get(mutation, 0), *range(_MOST_SERIES))))


@pytest.mark.slow
def test_without_a_mutation_the_same_search_finds_none() -> None:
    take_many_incidents(range(8))


def search(chosen: settings) -> None:
    checks = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
    run_state_machine_as_test(
        Accidents, settings=settings(chosen, suppress_health_check=checks, deadline=None)
    )


def take_steps(seed: int) -> None:
    world = World()
    Series(world, random.Random(seed)).take(20)  # noqa: S311 - a repeatable choice, not for security
    for stack in STACKS:
        settle(world, stack)


def take_many_incidents(seeds: Iterable[int]) -> None:
    for seed in seeds:
        take_incidents(seed)


def take_incidents(seed: int) -> None:
    """Take a few steps in a row, as the state machine does."""
    chance = random.Random(seed)  # noqa: S311 - a repeatable choice, not for security
    world = World()

    def choose(options: Sequence[T]) -> T:
        return chance.choice(options)

    for _ in range(3):
        chance.choice(ALL)(world, chance.choice(STACKS), choose)
