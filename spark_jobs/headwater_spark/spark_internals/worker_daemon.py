"""The process from which Spark forks the Python workers of a local session.

It imports what tasks need. Otherwise each worker does that, for about two seconds of CPU time. Spark's own
daemon imports nothing: threads do not survive a fork, and pyarrow and pandas start some. So these, and
modules that import them, are left to the workers.
"""

import gc
from importlib import import_module

from pyspark import daemon

_MODULES = (
    "pyspark.worker",
    "pyspark.sql.functions",
    "headwater_spark.engine.program",
    "headwater_spark.engine.task",
    "headwater_spark.worker.task_session",
    "headwater_spark.worker.restore",
    "headwater_spark.worker.local_state",
)


def import_modules() -> None:
    """Import, and exclude what is imported from the garbage collections of the workers."""
    gc.disable()  # collections take a fifth of the time of imports, and free nothing
    for name in _MODULES:
        import_module(name)
    gc.collect()
    gc.freeze()
    gc.enable()


if __name__ == "__main__":
    import_modules()
    daemon.manager()
