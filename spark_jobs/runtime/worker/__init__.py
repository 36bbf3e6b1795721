"""One batch of one task in a worker process: its records, its local state, its transaction.

Belongs here: what talks to Kafka beside Spark and what keeps a task between two batches. Nothing here knows
PySpark: the same code could be driven by anything that hands over records.
"""
