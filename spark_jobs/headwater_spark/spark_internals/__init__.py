"""Private parts of PySpark and Spark that Headwater uses, because no public API does the same.

Each function or class is one use and states its reason. `check_spark_internals` tries all of them when an
application starts: with another Spark, the start fails with a clear problem, and not the first batch. Only
signals (`input_signals`) have a fallback. No other package uses private names of PySpark; a test enforces it.
"""
