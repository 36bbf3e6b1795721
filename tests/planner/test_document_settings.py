"""Settings of a document that change how an application behaves, although no topic changes."""

import json
from collections.abc import Mapping

import attrs
import pytest

from headwater.compiler import build_nodes
from headwater.describe import write_description
from headwater.model.compiled import CompiledApplication
from headwater.model.records import SetupRecord
from headwater.planner.document_settings import (
    SettingChange,
    change_texts,
    document_settings,
    normalize_expression,
    read_settings,
    read_texts,
    setting_changes,
)
from tests.compiler.applications import compiled as compiled_document
from tests.compiler.applications import document
from tests.planner.simulated_cluster import MANUAL, SimulatedCluster
from tests.planner.simulated_cluster import application as compiled

BEFORE = "{id: app, kafkaStreams: '4.2', config: {num.standby.replicas: 1}}"


def application(text: str, where: str = "value > 0") -> CompiledApplication:
    topology = f"[{{stream: orders}}, {{filter: {{where: {where}}}}}, {{to: copies}}]"
    return compiled_document(f"application: {text}\ntopology: {topology}", {"orders": 1})


def record(of: CompiledApplication) -> SetupRecord:
    version = str(of.application.kafka_streams)
    return SetupRecord(of.application.id, {}, kafka_streams=version, settings=document_settings(of))


@pytest.mark.parametrize(
    ("after", "changes"),
    [
        (BEFORE, {}),
        (BEFORE.replace("1}", "2}"), {"num.standby.replicas": "1 → 2"}),
        (BEFORE.replace("num.standby.replicas: 1", ""), {"num.standby.replicas": "1 → unset"}),
        (
            BEFORE.replace("1}", "1, partition.autoscaling.enabled: true}"),
            {"partition.autoscaling.enabled": "unset → true"},
        ),
        (BEFORE.replace("id: app,", "id: app, protocol: streams,"), {"protocol": "classic → streams"}),
        (BEFORE.replace("id: app,", "id: app, processors: 2,"), {"processors": "unset → 2"}),
        (BEFORE.replace("4.2", "4.3"), {"kafkaStreams": "4.2.2 → 4.3.1"}),
        (BEFORE.replace("4.2", "4.2.1"), {}),
        (BEFORE.replace("kafkaStreams: '4.2', ", ""), {}),
        (BEFORE.replace("1}", "1, ssl.key.password: a, producer.sasl.jaas.config: b}"), {}),
        (BEFORE.replace("id: app,", "id: app, setup: {reinitialize: true},"), {}),
    ],
)
def test_what_counts_as_a_changed_setting(after: str, changes: Mapping[str, str]) -> None:
    found = setting_changes(application(after), record(application(BEFORE)))
    assert {change.key: change.text for change in found} == changes


def test_nothing_is_known_without_recorded_settings() -> None:
    changed = application(BEFORE.replace("1}", "2}"))
    before = record(application(BEFORE))
    assert setting_changes(changed, None) == ()
    assert setting_changes(changed, attrs.evolve(before, settings={})) == ()
    assert setting_changes(changed, attrs.evolve(before, unfinished=True)) == ()


def test_a_changed_setting_is_a_change_of_the_plan_once() -> None:
    cluster = SimulatedCluster.set_up(compiled())
    manual = compiled(config=MANUAL)
    planned = cluster.up(manual)
    assert planned.has_changes
    assert not any(action.is_change for action in planned.actions)
    assert not cluster.plan(manual).has_changes


UNRECORDED = (
    "ssl.keystore.password",
    "ssl.keystore.key",
    "ssl.truststore.certificates",
    "producer.sasl.jaas.config",
    "main.consumer.ssl.keystore.key",
    "my.api.key",
    "apiKey",
    "private.key",
    "passphrase",
    "db.passwd",
    "authorization",
    "aws.access.key.id",
    "consumer.interceptor.keystore.key",
    "slack.webhook.url",
    "basic.auth.user.info",
)
HIDDEN = ("hunter2-before", "hunter2-after")


def with_configs(config: Mapping[str, str], id_: str = "app") -> CompiledApplication:
    of = application(f"{{id: {id_}}}")
    return attrs.evolve(of, application=attrs.evolve(of.application, config=config))


def with_config(key: str, value: str, id_: str = "app") -> CompiledApplication:
    return with_configs({key: value}, id_)


def configs_of(of: CompiledApplication) -> Mapping[str, str]:
    """Return what is recorded, without protocol and topology."""
    return {key: value for key, value in document_settings(of).items() if key not in ("protocol", "topology")}


@pytest.mark.parametrize("key", UNRECORDED)
def test_nothing_is_recorded_of_passwords_and_configs_with_the_name_of_a_secret(key: str) -> None:
    before, after = (with_config(key, value) for value in HIDDEN)
    assert configs_of(before) == configs_of(after) == {}
    assert setting_changes(after, record(before)) == ()


@pytest.mark.parametrize("key", ["my.option", "consumer.my.option", "Acks", "sha256"])
def test_a_config_that_is_not_known_is_recorded_as_a_digest(key: str) -> None:
    before, after = (with_config(key, value) for value in HIDDEN)
    recorded = document_settings(before)
    assert "hunter2" not in str(recorded)
    assert setting_changes(before, record(before)) == ()
    [change] = setting_changes(after, record(before))
    assert (change.key, change.text) == (key, "changed")
    assert "hunter2" not in str(change)
    [removed] = setting_changes(application("{id: app}"), record(before))
    [added] = setting_changes(before, record(application("{id: app}")))
    assert (removed.text, added.text) == ("set → unset", "unset → set")
    others = (with_config(key, HIDDEN[0], "other"), with_config("another.option", HIDDEN[0]))
    assert not set(recorded.values()) & {value for other in others for value in configs_of(other).values()}


def test_a_value_that_looks_like_a_digest_is_not_recorded() -> None:
    value = f"sha256:{'0' * 16}"
    assert value not in document_settings(with_config("my.option", value)).values()


@pytest.mark.parametrize(
    ("value", "recorded"),
    [
        ("https://user:pw@host/path", "https://host/path"),
        ("https://user:p@w/?#@host:8081", "https://host:8081"),
        ("http://a:pw@one,http://b:pw@two", "http://two"),
        ("https://host/path?token=pw#pw", "https://host/path"),
        ("//user:pw@host", "//host"),
        ("https://host/path", "https://host/path"),
        ("one:9092,two:9092", "one:9092,two:9092"),
    ],
)
def test_urls_are_recorded_without_credentials(value: str, recorded: str) -> None:
    known, unknown = "sasl.oauthbearer.token.endpoint.url", "schema.registry.url"
    found = document_settings(with_configs({known: value, unknown: value}))
    assert found[known] == recorded
    assert found[unknown] == document_settings(with_config(unknown, recorded))[unknown]
    assert read_settings("app", found) == found


@pytest.mark.parametrize("key", ["sasl.oauthbearer.token.endpoint.url", "schema.registry.url"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("http://u:one@host", "http://u:two@host"),
        ("http://host?token=one", "http://host?token=two"),
        ("http://u:p@one,http://u:p@two", "http://u:p@three,http://u:p@two"),
        ("http://host", "http://u:p@host"),
        ("http://u:p@host", "http://host"),
    ],
)
def test_nothing_is_recorded_of_a_password_in_a_url(key: str, before: str, after: str) -> None:
    """Not even a few digits of a digest: the digits of several applications and keys identify a password."""
    one, other = (with_config(key, value) for value in (before, after))
    assert document_settings(one) == document_settings(other)
    assert setting_changes(other, record(one)) == ()


EDITS = [
    ("filter: {where: value.n > 1}", True),
    ("filter: {where: value.n > 0, name: positive}", True),
    ("filter: {where: value.n > 0, materialized: kept}", True),
    ("filterNot: {where: value.n > 0}", True),
    ("filter: {where:   'value.n > 0'}   # a comment", False),
]


@pytest.mark.parametrize(("edit", "is_change"), EDITS)
def test_an_edited_operator_is_a_changed_setting(edit: str, is_change: bool) -> None:  # noqa: FBT001
    def of(step: str) -> CompiledApplication:
        return compiled_document(
            f"topology:\n  - table: {{topic: orders}}\n  - {step}\n  - toStream:\n  - to: copies\n",
            {"orders": 1},
        )

    before = record(of("filter: {where: value.n > 0}"))
    changes = {change.key: change.text for change in setting_changes(of(edit), before)}
    assert changes == ({"topology": "changed"} if is_change else {})
    assert "value" not in str(before.settings)


def test_no_topology_is_compared_with_a_record_without_one() -> None:
    of = application(BEFORE)
    settings = {key: value for key, value in document_settings(of).items() if key != "topology"}
    assert settings
    assert setting_changes(of, attrs.evolve(record(of), settings=settings)) == ()


def test_a_described_topology_changes_with_its_text_only() -> None:
    text = write_description(build_nodes(document("topology: [{stream: orders}, {mapValues: }, {to: out}]")))
    other = write_description(build_nodes(document("topology: [{stream: orders}, {peek: }, {to: out}]")))

    def of(described: str, comment: str = "") -> CompiledApplication:
        return compiled_document(f"describe: {json.dumps({'text': described})}{comment}", {"orders": 1})

    before = record(of(text))
    assert setting_changes(of(f"\n{text}", "\n# a comment"), before) == ()
    [change] = setting_changes(of(other), before)
    assert (change.key, change.text) == ("topology", "changed")


def test_what_an_earlier_version_recorded_is_neither_shown_nor_a_change() -> None:
    config = {"my.api.key": "hunter2", "my.option": "hunter2", "acks": "all"}
    of = with_configs(config)
    topology = document_settings(of)["topology"]
    redacted = read_settings("app", {"protocol": "classic", "topology": topology, **config})
    assert "hunter2" not in str(redacted)
    assert redacted == document_settings(of) == read_settings("app", redacted)
    texts = {"acks": "all → 1", "my.option": "unset → hunter2", "protocol": "classic → streams"}
    shown = {**texts, "my.option": "changed"}
    assert read_texts(texts) == shown == read_texts(shown)


def test_a_change_that_was_not_recorded_has_another_text_in_each_run() -> None:
    """Otherwise Pulumi shows no difference after a run that failed."""
    digest = f"sha256:{'0' * 16}"
    changes = (SettingChange("acks", "all", "1"), SettingChange("my.option", None, digest))
    runs = [change_texts(changes, {})]
    for _ in range(3):
        runs.append(change_texts(changes, read_texts(runs[-1])))
        assert all(runs[-1][key] != runs[-2][key] for key in runs[-1])
    assert runs[0] == runs[2] == {"acks": "all → 1", "my.option": "unset → set"}
    assert change_texts((), runs[1]) == runs[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("value.n>0", "  value.n \n >\t0 "),
        ("a and b", "a  and\nb"),
        ("coalesce(value, 0)", "coalesce( value,0 )"),
        ("array(1, -1)[0]", "array( 1,-1 ) [ 0 ]"),
        ("key = 'a  b'", "key='a  b'"),
        ("`a b` + 1", "`a b`+1"),
        (r"'it\'s' || x", r"'it\'s'||x"),
    ],
)
def test_white_space_outside_quotes_does_not_count(one: str, other: str) -> None:
    assert normalize_expression(one) == normalize_expression(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("not x", "notx"),
        ("'a b'", "'a  b'"),
        ("`a b`", "`ab`"),
        ('"a b"', '"ab"'),
        (r"'it\'s  a' || ' b'", r"'it\'s a' || ' b'"),
        ("a - -1", "a --1"),
        ("a -- x\n + b", "a -- x + b"),
        (r"concat(r'\', 'a  b')", r"concat(r'\', 'a b')"),
        ("a /* x */ + b", "a /* x*/ + b"),
    ],
)
def test_white_space_that_may_matter_counts(one: str, other: str) -> None:
    assert normalize_expression(one) != normalize_expression(other)


@pytest.mark.parametrize("text", ["", " ", "'", "a '", "-- x"])
def test_any_text_is_accepted(text: str) -> None:
    assert normalize_expression(text).strip() == text.strip()


def test_the_time_grows_with_the_length_of_the_text_only() -> None:
    """Each quote would otherwise be searched to the end of the text."""
    assert len(normalize_expression("'" + "\\'" * 200_000)) == 400_001
