"""The Spark session: its settings, the process of its JVM, and the process that forks its Python workers."""
