"""The client on the driver, as far as it is not Spark's: where reading begins, set-up, purging, the watch.

Nothing here imports PySpark.
"""
