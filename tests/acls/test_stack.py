"""ACLs as resources of a real stack, with a user that has only the permissions that Headwater needs."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from headwater.compiler import build_nodes, compile_document, compile_documents
from headwater.describe import write_description
from headwater.model.acls import Operation, Permission, ResourceKind
from headwater.model.records import OWNERSHIP_TOPIC
from headwater.planner.acls import Purpose, headwater_needs
from headwater.spec import load_documents
from headwater.toolchain import PulumiToolchain
from tests.acls.conftest import HEADWATER
from tests.acls.secured_cluster import SecuredCluster
from tests.pulumi.driver import Outcome, Stack

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

PRINCIPAL = f"User:{HEADWATER.name}"


@attrs.frozen
class Shop:
    """A stack on the secured cluster. All applications run as one user and read one topic."""

    stack: Stack
    secured_cluster: SecuredCluster
    source: str
    user: str
    _ids: set[str] = attrs.field(factory=set, init=False)

    def declare(self, id_: str, *, acls: bool = True, **application: object) -> None:
        self._ids.add(id_)
        document: dict[str, Any] = {
            "application": {"id": id_, **application},
            **({"acls": {"principals": [self.user]}} if acls else {}),
            "topology": [
                {"stream": {"topic": self.source}},
                {"groupBy": {"key": "value.customer", "name": "by-customer"}},
                {"count": {"materialized": "counts"}},
            ],
        }
        self.stack.document(id_, yaml.safe_dump(document))

    def allow(self, purpose: Purpose) -> None:
        """Grant Headwater's user the permissions for the documents."""
        loaded = load_documents([self.stack.folder / "documents"])
        compiled = compile_documents(loaded.documents, {})
        self.secured_cluster.set_acls(
            PRINCIPAL, [need.permission for need in headwater_needs(purpose, compiled)]
        )

    def up(self) -> Outcome:
        log = self.secured_cluster.log_length
        outcome = self.stack.up()
        assert outcome.succeeded, str(outcome)
        assert self.denials(log) == set()
        return outcome

    def denials(self, start: int) -> set[Permission]:
        """Return the permissions on names of this stack that were denied, from byte `start` of the log."""
        return self.secured_cluster.denials(start, self.source, *self._ids)

    def assert_no_changes(self) -> None:
        outcome = self.stack.preview("--expect-no-changes")
        assert outcome.succeeded, str(outcome)

    def granted(self) -> set[str]:
        return {acl.permission.text for acl in self.secured_cluster.acls(self.user)}

    def held(self) -> set[str]:
        """Return the names of the ACLs in the state."""
        return {
            resource["urn"].split("::", maxsplit=3)[3]
            for resource in self.stack.state()
            if resource["type"] == "kafka:index/acl:Acl"
        }


def permissions(id_: str) -> set[str]:
    """Return the permissions that an application needs in addition to those on its source."""
    return {
        *(f"{each} Topic {id_}-by-customer-repartition" for each in ("Read", "Write", "Delete")),
        *(f"{each} Topic {id_}-counts-changelog" for each in ("Read", "Write")),
        f"Read Group {id_}",
    }


@pytest.fixture
def shop(
    tmp_path: Path,
    pulumi_toolchain: PulumiToolchain,
    secured_cluster: SecuredCluster,
    unique: Callable[[str], str],
) -> Shop:
    settings: Mapping[str, str] = {
        "bootstrapServers": secured_cluster.broker.address("SASL_PLAINTEXT"),
        "securityProtocol": "SASL_PLAINTEXT",
        "saslMechanism": "PLAIN",
        "saslUsername": HEADWATER.name,
    }
    stack = Stack.create(
        tmp_path / "stack",
        pulumi_toolchain,
        settings,
        environment={"HEADWATER_SASL_PASSWORD": HEADWATER.password},
        is_preloaded=True,
        has_passphrase=False,
    )
    source = unique("orders")
    secured_cluster.create({source: 2})
    return Shop(stack, secured_cluster, source, f"User:{unique('user')}")


def test_acls_are_granted_restored_and_revoked(shop: Shop, unique: Callable[[str], str]) -> None:
    id_ = unique("app")
    shop.declare(id_)
    shop.allow(Purpose.UP)
    existing = Permission(ResourceKind.GROUP, id_, Operation.READ)
    shop.secured_cluster.set_acls(shop.user, [existing])
    expected = permissions(id_) | {f"Read Topic {shop.source}"}
    assert "1 ACL to adopt" in shop.up().text
    assert shop.granted() == expected
    shop.assert_no_changes()
    destroyed = shop.stack.run("destroy", "--yes", "--skip-preview", "--run-program")
    assert "this ACL is not revoked: the documents require it" in destroyed.text, str(destroyed)
    assert shop.granted() == expected
    shop.secured_cluster.set_acls(shop.user, [existing])
    assert "6 ACLs to restore" in shop.up().text
    assert shop.granted() == expected
    shop.declare(id_, acls=False)
    assert "7 ACLs to revoke" in shop.up().text
    assert shop.granted() == set()


def test_an_acl_of_two_applications_is_kept_when_one_no_longer_needs_it(
    shop: Shop, unique: Callable[[str], str]
) -> None:
    name = unique("app")
    first, second = f"a{name}", f"b{name}"
    source = f"Read Topic {shop.source}"
    for id_ in (first, second):
        shop.declare(id_)
    shop.allow(Purpose.UP)
    shop.up()
    assert f"{first}/{shop.user} {source}" in shop.held()
    shop.declare(first, acls=False)
    shop.up()
    assert shop.granted() == permissions(second) | {source}
    assert f"{second}/{shop.user} {source}" in shop.held()
    shop.declare(second, lifecycle="released")
    shop.up()
    shop.stack.document(second, None)
    shop.up()
    assert shop.granted() == permissions(second) | {source}
    assert shop.held() == set()


def test_an_imported_application_is_planned_and_adopted_with_the_listed_permissions(
    shop: Shop, unique: Callable[[str], str]
) -> None:
    """The text of a topology has the internal topics without the application's prefix."""
    id_ = unique("app")
    shop.declare(id_)
    (document,) = load_documents([shop.stack.folder / "documents"]).documents
    compiled = compile_document(document, {shop.source: 2})
    for topic in compiled.internal_topics:
        shop.secured_cluster.create({topic.name: 2}, topic.config)
    imported = {
        "application": {"id": id_},
        "describe": {
            "text": write_description(build_nodes(document)),
            "stores": {"counts": {"kind": "timestampedKeyValue"}},
        },
    }
    shop.stack.document(id_, yaml.safe_dump(imported))
    shop.allow(Purpose.PLAN)
    log = shop.secured_cluster.log_length
    preview = shop.stack.preview()
    assert preview.succeeded, str(preview)
    assert "2 to adopt" in preview.text
    # The topic exists if an earlier test has created it. Only deletions need its settings.
    assert {(denied.name, denied.operation) for denied in shop.denials(log)} <= {
        (OWNERSHIP_TOPIC, Operation.DESCRIBE_CONFIGS)
    }
    shop.allow(Purpose.UP)
    shop.up()


def without(needed: Iterable[Permission], operation: Operation) -> list[Permission]:
    return [permission for permission in needed if permission.operation is not operation]


@pytest.mark.soak  # without Pulumi, for each permission: `test_headwater`
def test_a_run_without_permission_changes_nothing(shop: Shop, unique: Callable[[str], str]) -> None:
    id_ = unique("app")
    shop.declare(id_)
    shop.allow(Purpose.UP)
    held = [acl.permission for acl in shop.secured_cluster.acls(PRINCIPAL)]
    shop.secured_cluster.set_acls(PRINCIPAL, without(held, Operation.CREATE))
    outcome = shop.stack.up()
    assert not outcome.succeeded
    assert "error[NotAuthorized]" in outcome.text, str(outcome)
    assert f"Grant the user Create on topic {id_}-by-customer-repartition" in " ".join(outcome.text.split())
    assert "nothing was changed" in outcome.text
    assert shop.granted() == set()
    assert not [name for name in shop.secured_cluster.topics() if name.startswith(id_)]
    # A preview needs only the permissions to read.
    shop.allow(Purpose.PLAN)
    preview = shop.stack.preview()
    assert preview.succeeded, str(preview)
