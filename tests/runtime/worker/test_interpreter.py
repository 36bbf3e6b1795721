"""Garbage collections and the switch interval of Python while records are processed, read and written."""

import gc
import sys
import warnings
from collections.abc import Iterator

import pytest

from headwater_spark.worker import interpreter
from headwater_spark.worker.interpreter import cheap_collections, paused_gc, short_switch_interval


@pytest.fixture
def new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Unfreeze what the test run keeps; to collect that takes half a second."""
    monkeypatch.setattr(interpreter, "_frozen", set())
    monkeypatch.setattr(interpreter, "_found_frozen", set())
    gc.unfreeze()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about objects of other tests that ran in this process
        gc.collect()
    yield
    gc.freeze()


def test_nothing_is_collected_during_a_batch() -> None:
    with paused_gc():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_collection_resumes_after_a_failed_batch() -> None:
    with pytest.raises(ValueError, match="poison"), paused_gc():
        raise ValueError("poison")
    assert gc.isenabled()


def test_collection_resumes_when_no_thread_processes_a_batch() -> None:
    with paused_gc():
        with paused_gc():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


@pytest.mark.usefixtures("new_process")
def test_objects_are_frozen_after_the_first_batch_only() -> None:
    with paused_gc():
        pass
    kept = gc.get_freeze_count()
    assert kept > 0
    with paused_gc():
        batch = [[] for _ in range(1_000)]  # type: ignore[var-annotated]
    assert gc.get_freeze_count() <= kept, "objects of later batches are collected"
    del batch


def test_the_interval_is_short_inside_the_block_only() -> None:
    before = sys.getswitchinterval()
    inside = 0.0

    def fail() -> None:
        nonlocal inside
        with short_switch_interval():
            inside = sys.getswitchinterval()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert inside < before / 5
    assert sys.getswitchinterval() == before


@pytest.mark.usefixtures("new_process")
def test_collections_do_not_inspect_earlier_objects_inside_the_block() -> None:
    earlier: object = type("Earlier", (), {})()
    with cheap_collections():
        inspected = {id(each) for each in gc.get_objects()}
        later: object = type("Later", (), {})()
        assert id(later) in {id(each) for each in gc.get_objects()}
    assert id(earlier) not in inspected
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("new_process")
def test_objects_that_were_frozen_before_stay_frozen() -> None:
    earlier: object = type("Earlier", (), {})()
    gc.freeze()
    with cheap_collections():
        pass
    assert id(earlier) not in {id(each) for each in gc.get_objects()}


def test_a_worker_that_has_processed_a_batch_freezes_nothing_more() -> None:
    with paused_gc():
        pass
    later: object = type("Later", (), {})()
    with cheap_collections():
        assert id(later) in {id(each) for each in gc.get_objects()}
