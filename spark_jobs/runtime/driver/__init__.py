"""The driver of an application: queries of Spark that pass records to tasks, and everything around them.

Belongs here: the only modules that import PySpark; the client's states, topics, offsets and restarts. A
record is processed by the engine (`spark_jobs.runtime.engine.task`), inside the workers.
"""
