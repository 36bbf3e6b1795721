"""Garbage collection is paused during a batch and ignores the objects that a worker keeps."""

import gc
import warnings
from collections.abc import Iterator

import pytest

from headwater_spark.worker import gc_pause
from headwater_spark.worker.gc_pause import paused_gc


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(gc_pause, "_frozen", set())
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


def test_objects_are_frozen_after_the_first_batch_only() -> None:
    with paused_gc():
        pass
    kept = gc.get_freeze_count()
    assert kept > 0
    with paused_gc():
        batch = [[] for _ in range(1_000)]  # type: ignore[var-annotated]
    assert gc.get_freeze_count() <= kept, "objects of later batches are collected"
    del batch
