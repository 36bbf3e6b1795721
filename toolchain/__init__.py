"""How the programs that Headwater runs are obtained: Pulumi's CLI and plugins, Kafka, Spark's connector.

Each is fetched or built once, into a cache folder keyed by version and content, and found there in
milliseconds later.
"""

from toolchain.errors import ToolchainError
from toolchain.kafka import KafkaDistribution, ensure_kafka
from toolchain.pulumi_cli import PulumiToolchain, ensure_pulumi
from toolchain.spark import ensure_spark_jars, fetched_spark_jars

__all__ = [
    "KafkaDistribution",
    "PulumiToolchain",
    "ToolchainError",
    "ensure_kafka",
    "ensure_pulumi",
    "ensure_spark_jars",
    "fetched_spark_jars",
]
