"""Kafka's own command line programs, named as in its `bin` folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from headwater.toolchain.broker.launch import tool_command
from headwater.toolchain.kafka import KafkaDistribution

TOOLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "topics": "org.apache.kafka.tools.TopicCommand",
        "configs": "kafka.admin.ConfigCommand",
        "acls": "org.apache.kafka.tools.AclCommand",
        "console-producer": "org.apache.kafka.tools.ConsoleProducer",
        "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        "streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
        "groups": "org.apache.kafka.tools.GroupsCommand",
        "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
        "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    }
)
"""Those that take `--bootstrap-server`: `topics` is `kafka-topics.sh`. The values are main classes."""

_SERVER: Final = "--bootstrap-server"


def command(
    distribution: KafkaDistribution, tool: str, bootstrap_servers: str, arguments: Sequence[str]
) -> tuple[str | Path, ...]:
    """Return the command line of a program of `TOOLS`; a `--bootstrap-server` in `arguments` wins."""
    named = any(each.split("=")[0] == _SERVER for each in arguments)
    server = () if named else (_SERVER, bootstrap_servers)
    return (*tool_command(distribution, TOOLS[tool]), *server, *arguments)
