"""Python's garbage collector stands still during a batch, and passes over what a worker keeps."""

import gc
from collections.abc import Iterator

import pytest

from spark_jobs.runtime.worker import garbage
from spark_jobs.runtime.worker.garbage import no_collection


@pytest.fixture(autouse=True)
def another_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(garbage, "_frozen", set())
    yield
    gc.unfreeze()


def test_nothing_is_collected_during_a_batch() -> None:
    with no_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_a_batch_that_failed() -> None:
    with pytest.raises(ValueError, match="poison"), no_collection():
        raise ValueError("poison")
    assert gc.isenabled()


def test_what_is_there_after_the_first_batch_is_passed_over() -> None:
    with no_collection():
        pass
    kept = gc.get_freeze_count()
    assert kept > 0
    with no_collection():
        batch = [[] for _ in range(1_000)]  # type: ignore[var-annotated]
    assert gc.get_freeze_count() <= kept, "what later batches make is looked at"
    del batch
