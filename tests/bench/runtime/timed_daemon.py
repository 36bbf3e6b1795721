"""The daemon of the Python workers, with a line for each span of a task (`batch_times.Span`).

Spark runs this module instead of `spark_internals.worker_daemon`. `FOLDER` names where the lines are written.
"""

import functools
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark import daemon

from headwater_spark.spark_internals.worker_daemon import import_modules
from headwater_spark.worker import task_rows
from headwater_spark.worker.task_batch import OpenTask
from headwater_spark.worker.transaction import AtLeastOnceProducer, TransactionalProducer

FOLDER = "HEADWATER_BENCH_SPANS"
_TIMED: Mapping[str, tuple[tuple[Any, str], ...]] = {
    "read": ((task_rows, "split_by_task"),),
    "process": ((OpenTask, "process_batch"),),
    "save": ((OpenTask, "_commit"),),
    "send": ((AtLeastOnceProducer, "send"), (TransactionalProducer, "send")),
    "commit": ((AtLeastOnceProducer, "commit"), (TransactionalProducer, "commit")),
}
"""Span → the functions that it covers."""


def _timed(function: Callable[..., Any], what: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*arguments: object, **named: object) -> object:
        start = time.time()
        try:
            return function(*arguments, **named)
        finally:
            span = {"process": os.getpid(), "what": what, "start": start, "end": time.time()}
            with Path(os.environ[FOLDER], str(os.getpid())).open("a", encoding="utf-8") as file:
                file.write(json.dumps(span) + "\n")

    return run


if __name__ == "__main__":
    import_modules()
    for span, functions in _TIMED.items():
        for owner, name in functions:
            setattr(owner, name, _timed(getattr(owner, name), span))
    daemon.manager()
