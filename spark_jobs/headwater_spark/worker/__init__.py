"""A task inside a Python process of Spark: its records, its local state, its Kafka transaction.

Belongs here: whatever uses Kafka without Spark, and whatever a task keeps between two batches. No module here
imports PySpark.
"""
