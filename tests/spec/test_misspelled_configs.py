"""Which unknown keys of an application's config count as misspelled, and what they mean."""

import re
import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headwater.compiler.configs.table import HEADWATER_CONFIGS, known_keys
from headwater.model.problems import Severity
from headwater.spec import parse_document
from headwater.spec.misspelled_configs import _EXISTING_WORDS, find_meant_config, is_one_edit

KEYS = sorted(key for key in known_keys() if not key.startswith("__"))
LETTERS = string.ascii_lowercase + string.digits + "._-"


WORD = re.compile(r"[a-z0-9]+")
OTHER_SHORT_KEYS = [
    ".".join((*words[:at], other, *words[at + 1 :]))
    for words in (WORD.findall(key) for key in KEYS if not key.startswith("topic."))
    if len(words) <= 2
    for at, word in enumerate(words)
    for other in sorted(_EXISTING_WORDS)
    if len(other) == len(word)
]
"""Short known keys, in which one word is replaced by another word that exists."""


@st.composite
def edited_keys(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a key of Kafka or Headwater, and the key with a letter more, less or another, or two exchanged."""
    key = draw(st.sampled_from(KEYS))
    at = draw(st.integers(0, len(key) - 1))
    letter = draw(st.sampled_from(LETTERS))
    edits = [key[:at] + letter + key[at:], key[:at] + key[at + 1 :], key[:at] + letter + key[at + 1 :]]
    if at + 1 < len(key):
        edits.append(key[:at] + key[at + 1] + key[at] + key[at + 2 :])
    return key, draw(st.sampled_from(edits))


@given(edited_keys())
def test_each_known_key_with_one_edit_is_recognized(edited: tuple[str, str]) -> None:
    key, written = edited
    assume(not set(WORD.findall(written)) & _EXISTING_WORDS)
    meant = find_meant_config(written)
    assert meant is not None
    # The edited key may be nearer to another one: `group.id` is one letter from `group.ip`.
    assert meant == key or is_one_edit(without_separators(written), without_separators(meant))


@given(st.sampled_from(OTHER_SHORT_KEYS))
def test_another_existing_word_makes_another_key_if_the_key_is_short(key: str) -> None:
    assert find_meant_config(key) is None


def without_separators(key: str) -> str:
    return "".join(letter for letter in key if letter.isalnum())


def test_a_known_key_means_itself() -> None:
    meant = {key: find_meant_config(key) or "" for key in KEYS}
    assert {key for key in KEYS if without_separators(meant[key]) != without_separators(key)} == set()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("num_stream_threads", "num.stream.threads"),
        ("numStreamThreads", "num.stream.threads"),
        ("NUM_STREAM_THREADS", "num.stream.threads"),
        ("main-consumer.max-poll-records", "main.consumer.max.poll.records"),
        ("stream.num.threads", "num.stream.threads"),
        ("num.threads", "num.stream.threads"),
        ("commit.interval", "commit.interval.ms"),
        ("consumer.max.poll", None),
        ("key.serde", "default.key.serde"),
        ("recieve.bufer.bytes", "receive.buffer.bytes"),
        ("topology.optimisaton", "topology.optimization"),
        ("producers.acks", "producer.acks"),
        ("producer.ack", "producer.acks"),
        ("producer.lingr.ms", "producer.linger.ms"),
        ("topics.cleanup.policy", "topic.cleanup.policy"),
        ("partition.autoscaling.enable", "partition.autoscaling.enabled"),
        ("schema.url", "schema.registry.url"),
        ("retention.ms", "topic.retention.ms"),
        ("cleanup.policy", "topic.cleanup.policy"),
        ("segment.bytes", "topic.segment.bytes"),
        ("max.pool.records", "max.poll.records"),
        ("state.dri", "state.dir"),
        ("acsk", "acks"),
        ("upgrade.form", "upgrade.from"),
        ("auto.commit.enable", "enable.auto.commit"),
        ("sasl.mechanisms", "sasl.mechanism"),
        ("fetch.wait.max.ms", "fetch.max.wait.ms"),
    ],
)
def test_keys_are_recognized_that_people_mistype(written: str, meant: str | None) -> None:
    assert find_meant_config(written) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("spring.kafka.streams.application-id", "application.id"),
        ("spring.kafka.streams.replication-factor", "replication.factor"),
        ("spring.kafka.streams.properties.num.stream.threads", "num.stream.threads"),
        ("spring.kafka.streams.properties.topic.retention.ms", "topic.retention.ms"),
        ("spring.kafka.properties.security.protocol", "security.protocol"),
        ("spring.cloud.stream.kafka.streams.binder.applicationId", "application.id"),
        ("spring.cloud.stream.kafka.streams.binder.configuration.commit.interval.ms", "commit.interval.ms"),
        (
            "spring.cloud.stream.kafka.streams.binder.functions.count.configuration.processing.guarantee",
            "processing.guarantee",
        ),
        ("spring.kafka.streams.properties[num.stream.threads]", "num.stream.threads"),
        ("spring.kafka.streams.properties.[num.stream.threads]", "num.stream.threads"),
        ("spring.kafka.properties.consumer.max.poll.records", "consumer.max.poll.records"),
        (
            "spring.cloud.stream.kafka.streams.bindings.process-in-0.consumer.configuration.max.poll.records",
            "max.poll.records",
        ),
        ("spring.cloud.stream.kafka.streams.bindings.process-in-0.consumer.applicationId", "application.id"),
        ("spring.cloud.stream.kafka.streams.binder.configuration[commit.interval.ms]", "commit.interval.ms"),
        ("spring.cloud.stream.kafka.streams.default.consumer.application-id", "application.id"),
        ("%prod.kafka-streams.num.stream.threads", "num.stream.threads"),
        ("%prod.quarkus.kafka-streams.application-id", "application.id"),
        ("kafka-streams.topology.optimization", "topology.optimization"),
        ("kafka-streams.consumer.session.timeout.ms", "consumer.session.timeout.ms"),
        ("quarkus.kafka-streams.application-server", "application.server"),
        ("spring.kafka.streams.auto-startup", None),
        ("spring.kafka.consumer.auto-offset-reset", None),
        ("spring.kafka.producer.acks", None),
        ("spring.kafka.admin.client-id", None),
        ("spring.cloud.stream.kafka.streams.bindings.process-in-0.consumer.enable-dlq", None),
        ("quarkus.kafka-streams.topics", None),
        ("spring.kafka.streams.properties.acme.key", None),
    ],
)
def test_keys_of_frameworks_are_recognized(written: str, meant: str | None) -> None:
    assert find_meant_config(written) == meant


OTHER_KEYS = (
    "producer.acme.key consumer.acme.endpoint admin.acme.token acme.producer.acks "
    "acme.num.stream.threads shop.retry.max.attempts our.own.setting "
    "consumer.interceptor.audit.topic producer.interceptor.audit.topic consumer.tenant.id "
    "producer.region.name enricher.cache.size enricher.timeout.ms schema.registry.request.timeout.ms "
    "schema.registry.http.connect.timeout.ms schema.registry.url.randomize "
    "schema.registry.sasl.mechanism schema.registry.client.id auto.register.schemas "
    "use.latest.version latest.compatibility.strict specific.avro.reader normalize.schemas "
    "value.subject.name.strategy key.subject.name.strategy basic.auth.credentials.source "
    "basic.auth.user.info bearer.auth.credentials.source bearer.auth.issuer.endpoint.url "
    "json.value.type json.fail.invalid.schema specific.protobuf.value.type derive.type "
    "max.schemas.per.subject reflection.allow.null apicurio.registry.auto-register "
    "apicurio.registry.artifact.group-id apicurio.auth.client.id azure.schema.registry.url "
    "schema.group dataformat avroRecordType schemaAutoRegistrationEnabled "
    "confluent.monitoring.interceptor.bootstrap.servers "
    "confluent.monitoring.interceptor.security.protocol "
    "consumer.confluent.monitoring.interceptor.sasl.mechanism producer.confluent.batch.expiry.ms "
    "confluent.metrics.reporter.bootstrap.servers confluent.metrics.reporter.topic.replicas "
    "confluent.telemetry.enabled confluent.license confluent.topic.bootstrap.servers "
    "consumer.confluent.monitoring.interceptor.ssl.truststore.location "
    "prometheus.metrics.reporter.port metrics.jmx.blacklist datadog.metrics.host "
    "otel.exporter.otlp.endpoint aws.region aws.profile.name awsRoleArn awsStsRegion "
    "msk.iam.role.arn software.amazon.msk.auth.iam.debug registry.name "
    "aws.glue.schema.registry.endpoint oauth.client.id oauth.client.secret oauth.token.endpoint.uri "
    "oauth.ssl.truststore.location oauth.connect.timeout.seconds oauth.scope oauth.username.claim "
    "strimzi.oauth.metric.reporters strimzi.security.oauth.client.id opa.authorizer.url "
    "config.providers.vault.class config.providers.secrets.param.secret.prefix "
    "consumer.config.providers.file.class spring.json.trusted.packages "
    "spring.json.value.default.type spring.deserializer.value.delegate.class dlq.topic.name "
    "dead.letter.queue.topic error.topic.name acls client.ip stats.dir roll.ms task.class consumer.client.ip "
    "compression.level sasl.class main.consumer.pool.ms stage.dir batch.side quota.window.num "
    "offset.storage.topic config.storage.replication.factor status.storage.partitions errors.tolerance "
    "transforms.unwrap.type plugin.path connector.class tasks.max "
    "listeners advertised.listeners log.dirs log.roll.ms broker.id node.id process.roles super.users "
    "offsets.topic.replication.factor num.partitions enabled.events queue.buffering.max.kbytes statistics "
    "kafka.streams.close-timeout mp.messaging.incoming.orders.topic micronaut.application.name"
)


@pytest.mark.parametrize("key", OTHER_KEYS.split())
def test_keys_of_other_classes_are_not_called_misspelled(key: str) -> None:
    application = {"id": "shop", "config": {key: "x"}}
    loaded = parse_document({"application": application, "topology": [{"stream": "orders"}]})
    assert [problem.fix for problem in loaded.problems if problem.severity is not Severity.INFO] == []


WORDS = st.lists(
    st.sampled_from(["acme", "audit", "tenant", "ledger", "fraud", "region", "vault"]), min_size=1, max_size=3
)


@given(
    WORDS, st.sampled_from(KEYS), st.sampled_from(["", "consumer.", "producer.", "admin.", "main.consumer."])
)
def test_a_known_key_after_words_of_its_own_belongs_to_another_class(
    words: list[str], known: str, prefix: str
) -> None:
    assert find_meant_config(prefix + ".".join((*words, known))) is None


@given(st.text(max_size=200))
def test_any_text_is_accepted(key: str) -> None:
    assert find_meant_config(key) is None or len(key) <= max(map(len, KEYS)) + 20


def test_configs_of_headwater_are_suggested() -> None:
    assert {find_meant_config(key + "s") for key in HEADWATER_CONFIGS} == set(HEADWATER_CONFIGS)
