"""Which configs each client of Kafka Streams gets; `tests/oracle/test_configs.py` compares with Kafka."""

import pytest

from headwater.compiler.configs.clients import Client, Given, StartedApplication, client_configs
from headwater.model.versions import DEFAULT_VERSION


def given(client: Client, name: str, **config: str) -> Given | None:
    keys = {key.replace("__", "."): text for key, text in config.items()}
    return client_configs(keys, DEFAULT_VERSION)[client].get(name)


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        (Client.MAIN, Given("main.consumer.fetch.min.bytes", "3")),
        (Client.RESTORE, Given("consumer.fetch.min.bytes", "2")),
        (Client.GLOBAL, Given("consumer.fetch.min.bytes", "2")),
        (Client.PRODUCER, None),
        (Client.ADMIN, None),
    ],
)
def test_the_longest_prefix_has_priority_and_other_clients_do_not_get_the_config(
    client: Client, expected: Given | None
) -> None:
    config = {
        "fetch__min__bytes": "1",
        "consumer__fetch__min__bytes": "2",
        "main__consumer__fetch__min__bytes": "3",
    }
    assert given(client, "fetch.min.bytes", **config) == expected


@pytest.mark.parametrize("client", [Client.MAIN, Client.PRODUCER, Client.ADMIN])
def test_a_config_without_prefix_is_for_each_client_that_has_it(client: Client) -> None:
    assert given(client, "request.timeout.ms", request__timeout__ms="7") == Given("request.timeout.ms", "7")


@pytest.mark.parametrize("client", [Client.RESTORE, Client.GLOBAL])
def test_consumers_without_a_group_get_no_group_instance_id(client: Client) -> None:
    config = {"group__instance__id": "one"}
    assert given(client, "group.instance.id", **config) is None
    assert given(Client.MAIN, "group.instance.id", **config) == Given("group.instance.id", "one-0")


def test_exactly_once_sets_the_isolation_level_of_consumers() -> None:
    config = {"consumer__isolation__level": "read_uncommitted"}
    assert given(Client.MAIN, "isolation.level", **config) == Given(
        "consumer.isolation.level", "read_uncommitted"
    )
    config["processing__guarantee"] = "exactly_once_v2"
    assert given(Client.MAIN, "isolation.level", **config) == Given(None, "read_committed")


def test_a_started_application_reads_the_value_and_names_its_key() -> None:
    config = {"producer.linger.ms": "9", "processing.guarantee": "exactly_once_v2"}
    started = StartedApplication(config, client_configs(config, DEFAULT_VERSION), DEFAULT_VERSION)
    assert started.exactly_once
    assert started.client_number(Client.PRODUCER, "linger.ms") == 9
    assert started.config_key(Client.PRODUCER, "batch.size", "linger.ms") == "producer.linger.ms"
    assert started.config_key(Client.PRODUCER, "batch.size") is None
    assert started.streams_value("num.stream.threads") == 1
