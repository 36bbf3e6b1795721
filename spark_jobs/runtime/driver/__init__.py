"""Programs run as streaming queries: the only importers of PySpark.

Belongs here: the session and its settings, reading Kafka, one batch through the tasks, exactly-once writing,
the life of the queries. What a record does is decided by the pure task (`spark_jobs.runtime.engine.task`).
"""
