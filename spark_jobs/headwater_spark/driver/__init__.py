"""The driver of an application: queries of Spark that pass records to tasks, and everything around them.

Belongs here: the only modules that import PySpark; the client's states, topics, offsets and restarts. A
record is processed by the engine (`headwater_spark.engine.task`), inside the workers.

`run` starts an application (`application`) on a session of `spark_session`, and `metrics` shows it. The
application executes its `queries`. These read what `input` chooses, on stream `threads`, and `topic_watch`
checks its `topics`. `processor_move` moves state to more or fewer processors; `processor_expansion` does that
while the application runs.
"""
