"""The permissions that a topology needs: all of them, and no others."""

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.compiler import compile_document
from headwater.model.acls import ANY_NAME, CLUSTER_NAME, Operation, Pattern, Permission, ResourceKind
from headwater.model.compiled import CompiledApplication
from headwater.planner.acls import (
    Need,
    Purpose,
    application_needs,
    headwater_needs,
    incomplete_needs,
    least_needs,
)
from headwater.planner.acls.application import named_permission, pattern_names
from headwater.spec import load_text

APPLICATION = """
application: {id: shop, config: {%s}}
%s
topology:
  - globalTable: {topic: regions}
  - stream: {topic: orders, as: orders}
  - groupBy: {from: orders, key: value.customer, name: by-customer}
  - reduce: {materialized: totals}
  - toStream:
  - to: {topic: out}
"""
SHOP_RIGHTS = {
    "Read Topic orders",
    "Write Topic out",
    "Read Topic regions",
    "Read Topic shop-by-customer-repartition",
    "Write Topic shop-by-customer-repartition",
    "Delete Topic shop-by-customer-repartition",
    "Read Topic shop-totals-changelog",
    "Write Topic shop-totals-changelog",
    "Read Group shop",
}


def compiled(text: str) -> CompiledApplication:
    loaded = load_text(text, "shop.yaml")
    assert not loaded.problems, loaded.problems
    return compile_document(loaded.documents[0], {})


def shop(config: str = "", acls: str = "") -> CompiledApplication:
    return compiled(APPLICATION % (config, f"acls: {{principals: ['User:shop']{acls}}}"))


def texts(application: CompiledApplication) -> set[str]:
    return permission_texts(application_needs(application, application.application.acls))


def permission_texts(needs: Iterable[Need]) -> set[str]:
    return {need.permission.text for need in needs}


def test_an_application_reads_writes_restores_purges_and_commits() -> None:
    assert texts(shop()) == SHOP_RIGHTS


def test_the_streams_protocol_needs_the_same() -> None:
    assert texts(shop("group.protocol: streams")) == SHOP_RIGHTS


def test_transactions_need_transactional_ids_with_the_application_id_as_prefix() -> None:
    assert texts(shop("processing.guarantee: exactly_once_v2")) == SHOP_RIGHTS | {
        "Write TransactionalID shop-*"
    }


def test_the_client_supplier_checks_and_expands_internal_topics_and_creates_none() -> None:
    supplier = "default.client.supplier: io.headwater.streams.HeadwaterClientSupplier"
    topics = ("shop-by-customer-repartition", "shop-totals-changelog")
    checks = {"Read Topic headwater-ownership", *(f"DescribeConfigs Topic {topic}" for topic in topics)}
    alters = {f"Alter Topic {topic}" for topic in topics}
    assert texts(shop(supplier)) == SHOP_RIGHTS
    assert texts(shop(f"{supplier}, internal.topics.setup: manual")) == SHOP_RIGHTS | checks
    assert texts(shop(f"{supplier}, partition.autoscaling.enabled: true")) == SHOP_RIGHTS | alters
    both = f"{supplier}, internal.topics.setup: manual, partition.autoscaling.enabled: true"
    assert texts(shop(both)) == SHOP_RIGHTS | checks | alters
    assert texts(shop("internal.topics.setup: manual, partition.autoscaling.enabled: true")) == SHOP_RIGHTS


@pytest.mark.parametrize("named_by", ["literal", "prefixed"])
def test_an_application_with_processors_adds_partitions_to_its_changelog_topics(named_by: str) -> None:
    document = APPLICATION.replace("{id: shop,", "{id: shop, processors: 4,") % (
        "processing.guarantee: exactly_once_v2",
        f"acls: {{principals: ['User:shop'], internalTopics: {named_by}}}",
    )
    altered = {text for text in texts(compiled(document)) if text.startswith("Alter")}
    assert altered == {"Alter Topic shop-totals-changelog"}


@pytest.mark.parametrize("handler", ["shutdown-application", "shop.failures:Handler"])
def test_clients_that_may_stop_all_others_read_a_group_of_their_own(handler: str) -> None:
    assert texts(shop(f"uncaught.exception.handler: '{handler}'")) == SHOP_RIGHTS | {
        "Read Group shop-shutdown"
    }
    assert texts(shop("uncaught.exception.handler: replace-thread")) == SHOP_RIGHTS


def test_prefixed_permissions_do_not_allow_the_deletion_of_changelogs() -> None:
    prefixed = texts(shop(acls=", internalTopics: prefixed"))
    assert {text for text in prefixed if "shop-" in text} == {
        "Read Topic shop-*",
        "Write Topic shop-*",
        "Delete Topic shop-by-customer-repartition",
    }


def test_the_configured_prefix_of_internal_topics_is_used() -> None:
    other = shop("__internal.override.topic.prefix__: mall", ", internalTopics: prefixed")
    assert {"Read Topic mall-*", "Delete Topic mall-by-customer-repartition", "Read Group shop"} <= texts(
        other
    )


def test_foreign_key_joins_may_purge_their_topics() -> None:
    join = compiled("""
application: {id: shop}
topology:
  - table: {topic: customers, as: customers}
  - table: {topic: orders, as: orders}
  - join: {from: orders, with: customers, foreignKey: value.customer, name: fk}
""")
    found = texts(join)
    for topic in ("shop-fk-subscription-registration-topic", "shop-fk-subscription-response-topic"):
        assert {f"{operation} Topic {topic}" for operation in ("Read", "Write", "Delete")} <= found
    assert "Write Topic orders" not in found


def test_a_source_that_is_also_a_changelog_is_only_read() -> None:
    reused = compiled("""
application: {id: shop, config: {topology.optimization: all}}
topology:
  - table: {topic: customers, materialized: customers}
""")
    assert texts(reused) == {"Read Topic customers", "Read Group shop"}


def test_a_topology_with_only_a_global_table_has_no_group() -> None:
    assert texts(compiled("application: {id: shop}\ntopology: [{globalTable: {topic: regions}}]")) == {
        "Read Topic regions"
    }


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("orders-.*", ["orders-*"]),
        ("orders-[0-9]+", ["orders-*"]),
        ("(eu|us)-orders", ["eu-orders", "us-orders"]),
        ("orders(-eu)?", ["orders", "orders-eu"]),
        ("payments|orders-.+", ["orders-*", "payments"]),
        ("[ab]+-orders", ["a-orders", "aa*", "ab*", "b-orders", "ba*", "bb*"]),
        (".*-orders", []),
        ("[a-z]+-orders", []),
        ("(?!x).*", []),
        (r"orders-(a)\1", []),
        ("x{249}", ["x" * 249]),
    ],
)
def test_a_pattern_becomes_names_and_prefixes(pattern: str, names: list[str]) -> None:
    assert pattern_names(pattern) == names


@pytest.mark.parametrize(
    "pattern", ["[ab]{1,3}-(x|y)+", "(a|ab)*c", "orders(-(eu|us))?(-v[0-9])?", "a?b?c?d?e?f.*"]
)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data())
def test_the_names_of_a_pattern_cover_all_topics_that_it_matches(pattern: str, data: st.DataObject) -> None:
    topic = data.draw(st.from_regex(pattern, fullmatch=True, alphabet=st.sampled_from("abcdefoprsuvxy-129")))
    required = Permission(ResourceKind.TOPIC, topic, Operation.READ)
    granted = [
        named_permission(ResourceKind.TOPIC, name, Operation.READ) for name in pattern_names(pattern) or ["*"]
    ]
    assert any(permission.covers(required) for permission in granted)


def stream(pattern: str, acls: str = "") -> CompiledApplication:
    return compiled(f"""
application: {{id: shop}}
acls: {{principals: ["User:shop"]{acls}}}
topology: [{{stream: {{pattern: "{pattern}"}}}}, {{to: {{extractor: "value.topic"}}}}]
""")


def test_unknown_topics_are_reported_until_they_are_declared() -> None:
    def summaries(application: CompiledApplication) -> list[str]:
        assert application.application.acls is not None
        return [problem.summary for problem in incomplete_needs(application, application.application.acls)]

    sinks, pattern = summaries(stream(".*-orders"))
    assert sinks.startswith("An extractor chooses")
    assert ".*-orders" in pattern
    assert summaries(stream("orders-.*", ", writes: ['out-*']")) == []
    declared = stream(".*-orders", ", writes: ['out-*', audit], reads: [eu-orders]")
    assert summaries(declared) == []
    assert texts(declared) == {
        "Write Topic out-*",
        "Write Topic audit",
        "Read Topic eu-orders",
        "Read Group shop",
    }


def test_an_observed_application_needs_its_internal_topics_and_declared_sinks() -> None:
    observed = compiled("""
application: {id: shop}
acls: {principals: ["User:shop"]}
observed:
  sources: {orders: 4}
  topics:
    by-customer-repartition: {kind: repartition, partitions: 4}
    totals-changelog: {kind: changelog, partitions: 4}
  unknown: [subtopologies]
""")
    assert texts(observed) == SHOP_RIGHTS - {"Write Topic out", "Read Topic regions"}
    assert observed.application.acls is not None
    [problem] = incomplete_needs(observed, observed.application.acls)
    assert "its sink topics are not known" in problem.summary


def test_covered_permissions_are_omitted() -> None:
    def need(operation: Operation, name: str, pattern: Pattern = Pattern.LITERAL) -> Need:
        return Need(Permission(ResourceKind.TOPIC, name, operation, pattern), "")

    needs = [
        need(Operation.DESCRIBE, "orders-eu"),
        need(Operation.READ, "orders-eu"),
        need(Operation.READ, "orders-", Pattern.PREFIXED),
        need(Operation.WRITE, "orders-eu"),
        need(Operation.WRITE, "orders-eu"),
        need(Operation.DESCRIBE_CONFIGS, "orders"),
        need(Operation.ALTER_CONFIGS, ANY_NAME),
        need(Operation.READ, "order"),
    ]
    assert [each.permission.text for each in least_needs(needs)] == [
        "AlterConfigs Topic *",
        "Read Topic order",
        "Read Topic orders-*",
        "Write Topic orders-eu",
    ]
    assert least_needs(least_needs(needs)) == least_needs(needs)


READING = {
    "Read Topic headwater-ownership",
    "Describe Group headwater-ownership",
    "Describe Topic orders",
    "Describe Topic regions",
    "Describe Topic out",
    "Describe Topic shop-*",
    "DescribeConfigs Topic shop-*",
    "Describe Group shop",
    f"Describe Cluster {CLUSTER_NAME}",
    f"DescribeConfigs Cluster {CLUSTER_NAME}",
}
CHANGING = {
    "Read Topic headwater-ownership",
    "Describe Group headwater-ownership",
    "Write Topic headwater-ownership",
    "Create Topic headwater-ownership",
    "AlterConfigs Topic headwater-ownership",
    "Describe Topic orders",
    "Describe Topic regions",
    "Describe Topic out",
    "Create Topic shop-*",
    "Alter Topic shop-*",
    "AlterConfigs Topic shop-*",
    "Describe Group shop",
    f"Alter Cluster {CLUSTER_NAME}",
    f"DescribeConfigs Cluster {CLUSTER_NAME}",
}
AGENT = {
    "Describe Topic orders",
    "Describe Topic regions",
    "Describe Group shop",
    "Alter Topic shop-*",
    "Read Topic headwater-agent-*",
    "Write Topic headwater-agent-*",
    "Create Topic headwater-agent-*",
    "AlterConfigs Topic headwater-agent-*",
    "Read Group headwater-agent-*",
}


DELETING = (CHANGING - {"Describe Group shop", "Describe Group headwater-ownership"}) | {
    "Delete Topic shop-*",
    "Describe Group *",
}


@pytest.mark.parametrize(
    ("purpose", "permissions"),
    [
        (Purpose.PLAN, READING),
        (Purpose.UP, CHANGING),
        (Purpose.RETIRE, DELETING),
        (Purpose.AGENT, AGENT),
    ],
)
def test_headwater_needs_the_permissions_for_its_purpose(purpose: Purpose, permissions: set[str]) -> None:
    assert permission_texts(headwater_needs(purpose, [shop()])) == permissions


def test_permissions_on_the_cluster_are_needed_only_for_acls_and_broker_defaults() -> None:
    plain = compiled(APPLICATION % ("replication.factor: 3", ""))
    assert not [text for text in permission_texts(headwater_needs(Purpose.UP, [plain])) if "Cluster" in text]


def test_permissions_on_managed_sinks_are_literal() -> None:
    managed = compiled(APPLICATION % ("", "topics: {out: {partitions: 4}}"))
    found = permission_texts(headwater_needs(Purpose.RETIRE, [managed]))
    assert {"Create Topic out", "Alter Topic out", "AlterConfigs Topic out"} <= found
    assert "Delete Topic out" not in found


def test_without_documents_the_permissions_are_on_all_topics_and_groups() -> None:
    assert permission_texts(headwater_needs(Purpose.PLAN)) == {
        "Describe Topic *",
        "DescribeConfigs Topic *",
        "Read Topic headwater-ownership",
        "Describe Group *",
        f"Describe Cluster {CLUSTER_NAME}",
        f"DescribeConfigs Cluster {CLUSTER_NAME}",
    }
