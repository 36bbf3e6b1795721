"""The client of the schema registry against a test server that answers as Apicurio Registry 3.0.9 does."""

import base64
import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import attrs
import pytest

from headwater.compiler import compile_document
from headwater.model.nodes import SourceNode
from headwater.model.problems import ProblemsError
from headwater.spec import load_text
from headwater_spark.driver.preflight import check_runnable
from headwater_spark.engine.serdes import CompilerUnavailableError, RegistryUnavailableError
from headwater_spark.engine.sources_and_sinks import serdes_of
from headwater_spark.worker import protobuf_schemas
from headwater_spark.worker.protobuf_schemas import compile_schema
from headwater_spark.worker.schema_registry import (
    URL,
    RegisteredSchemas,
    SchemaRegistry,
    configured_registry,
)
from tests.runtime.replay import BatchReplay, runnable_programs

SCHEMA = '{"type":"record","name":"A","fields":[{"name":"x","type":"int"}]}'
JSON_SCHEMA = '{"type":"object","required":["text"]}'
PROTO = 'syntax = "proto3"; message Item { string name = 1; int64 amount = 2; }'
NOT_SHARED = 'syntax = "proto3"; message OfOneTest {}'
UNKNOWN = {"error_code": 40401, "message": "No artifact with ID 'none' in group 'default' was found."}
ANSWERS = {
    "/subjects/orders-value/versions/latest": {
        "subject": "orders-value", "version": 2, "id": 3, "schema": SCHEMA, "schemaType": "AVRO",
        "references": [],
    },
    "/subjects/a%2Fb/versions/latest": {"subject": "a/b", "version": 1, "id": 4, "schema": '"int"'},
    "/schemas/ids/3": {"schema": SCHEMA, "schemaType": "AVRO", "references": []},
    "/schemas/ids/7": {"schema": JSON_SCHEMA, "schemaType": "JSON", "references": []},
    "/subjects/notes-value/versions/latest": {
        "subject": "notes-value", "version": 1, "id": 7, "schema": JSON_SCHEMA, "schemaType": "JSON",
    },
    "/schemas/ids/8": {"schema": "message A", "schemaType": "PROTOBUF", "references": []},
    "/schemas/ids/10": {"schema": PROTO, "schemaType": "PROTOBUF", "references": []},
    "/schemas/ids/12": {"schema": NOT_SHARED, "schemaType": "PROTOBUF"},
    "/schemas/ids/11": {"schema": "a,b", "schemaType": "CSV"},
    "/subjects/items-value/versions/latest": {
        "subject": "items-value", "version": 1, "id": 10, "schema": PROTO, "schemaType": "PROTOBUF",
    },
    "/schemas/ids/9": {"schema": SCHEMA, "references": [{"name": "B", "subject": "b", "version": 1}]},
}  # fmt: skip


@attrs.define
class Server:
    url: str
    failures: int = 0
    """How many of the next requests are answered with 503."""
    requests: list[tuple[str, str | None]] = attrs.field(factory=list)


class Answers(BaseHTTPRequestHandler):
    server_state: ClassVar[Server]

    def do_GET(self) -> None:
        state = self.server_state
        state.requests.append((self.path, self.headers["Authorization"]))
        if state.failures:
            state.failures -= 1
            self.send_error(503)
            return
        answer = ANSWERS.get(self.path, UNKNOWN)
        self.send_response(404 if answer is UNKNOWN else 200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as listening:
        state = Server(f"http://127.0.0.1:{listening.server_port}")
        Answers.server_state = state
        Thread(target=listening.serve_forever, args=(0.02,), daemon=True).start()
        yield state
        listening.shutdown()


def test_schemas_are_found_by_subject_and_by_id(server: Server) -> None:
    found = SchemaRegistry((server.url,))
    assert json.loads(found.latest("orders-value") or "") == {"id": 3, "schema": SCHEMA}
    assert json.loads(found.latest("a/b") or "")["id"] == 4
    assert found.schema(3) == SCHEMA
    assert found.latest("none") is None
    assert found.schema(99) is None


def test_a_subject_must_have_the_type_of_the_format(server: Server) -> None:
    found = SchemaRegistry((server.url,))
    assert json.loads(found.latest("notes-value", "JSON") or "") == {"id": 7, "schema": JSON_SCHEMA}
    assert found.schema(7) == JSON_SCHEMA
    with pytest.raises(ValueError, match="the schema is JSON, not AVRO"):
        found.latest("notes-value")
    with pytest.raises(ValueError, match="the schema is AVRO, not JSON"):
        found.latest("orders-value", "JSON")


@pytest.mark.parametrize("schema_id", [8, 9, 11], ids=["invalid", "references", "type"])
def test_other_schemas_are_rejected(server: Server, schema_id: int) -> None:
    with pytest.raises(ValueError, match=r"(?i)schema"):
        SchemaRegistry((server.url,)).schema(schema_id)


def test_protobuf_schemas_are_compiled(server: Server) -> None:
    found = SchemaRegistry((server.url,))
    latest = json.loads(found.latest("items-value", "PROTOBUF") or "")
    assert latest == {"id": 10, "schema": compile_schema(PROTO)}
    assert found.schema(10) == compile_schema(PROTO)
    with pytest.raises(ValueError, match="invalid Protobuf schema: 1:10"):
        found.schema(8)


def test_a_topology_over_protobuf(server: Server, tmp_path: Path) -> None:
    (tmp_path / "total.proto").write_text('syntax = "proto3"; message Total { int64 amount = 1; }')
    steps = [
        {"stream": {"topic": "items", "serdes": {"value": "protobuf-registry:items-value"}}},
        {"filter": {"where": "value.amount > 1"}},
        {"mapValues": {"value": "struct(value.amount * 2 as amount)"}},
        {"to": {"topic": "totals", "serdes": {"value": "protobuf:total.proto"}}},
    ]
    text = json.dumps({"application": {"id": "shop", "config": {URL: server.url}}, "topology": steps})
    document = load_text(text, "shop.json").documents[0]
    schemas = check_runnable(document, tmp_path).schemas
    replay = BatchReplay(
        runnable_programs(document, (), schemas=schemas, schema_of=RegisteredSchemas(server.url))
    )
    value = b"\0\0\0\0\x0a\0" + b"\x0a\x03tea\x10\x05"
    assert [record[3] for record in replay.pipe("items", b"k", value, 1)] == [b"\x08\x0a"]
    assert list(replay.pipe("items", b"k", b"\0\0\0\0\x0a\0", 2)) == []
    with pytest.raises(Exception, match=r"items.*invalid protobuf-registry:items-value value"):
        replay.pipe("items", b"k", b"\0\0\0\0\x0a\0\xff", 3)

    (tmp_path / "total.proto").write_text("message")
    with pytest.raises(ProblemsError, match=r"total\.proto cannot be used: invalid Protobuf schema: 1:8"):
        check_runnable(document, tmp_path)


def test_fields_that_an_application_does_not_read_are_logged(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the versions, and what helps: the programs of an application have the log."""
    format_ = "avro-registry:orders-value"
    steps = [
        {"stream": {"topic": "orders", "serdes": {"key": "string", "value": format_}}},
        {"to": {"topic": "copies"}},
    ]
    text = json.dumps({"application": {"id": "copies", "config": {URL: server.url}}, "topology": steps})
    document = load_text(text, "copies.json").documents[0]
    compiled = compile_document(document, {"orders": 1, "copies": 1})
    (program,) = check_runnable(document, tmp_path).programs(compiled)
    newer = json.loads(SCHEMA)
    newer["fields"].append({"name": "note", "type": "string"})
    program = attrs.evolve(program, schema_of={13: json.dumps(newer)}.get)
    (source,) = (node for node in program.nodes if isinstance(node, SourceNode))
    _, serde = serdes_of(source.reads, program)
    for _ in range(2):
        assert serde.deserialize(b"\0\0\0\0\x0d\2\2n") == {"x": 1}
    captured = capsys.readouterr()
    (line,) = [each for each in (captured.out + captured.err).splitlines() if "not read" in each]
    for part in ("fields of another schema version", format_, "A.note", "13", "3", "restart the application"):
        assert part in line


def test_a_failed_request_is_retried(server: Server) -> None:
    server.failures = 2
    assert SchemaRegistry((server.url,)).schema(3) == SCHEMA


def test_the_next_address_is_tried_when_one_does_not_answer(server: Server) -> None:
    dead = "http://127.0.0.1:1"
    assert SchemaRegistry((dead, server.url)).schema(3) == SCHEMA
    with pytest.raises(RegistryUnavailableError, match=dead):
        SchemaRegistry((dead,)).schema(3)


@pytest.mark.parametrize(
    ("environment", "sent"),
    [
        ({}, None),
        ({"SCHEMA_REGISTRY_USER_INFO": "me:secret"}, "Basic " + base64.b64encode(b"me:secret").decode()),
        ({"SCHEMA_REGISTRY_TOKEN": "abc"}, "Bearer abc"),
        ({"SCHEMA_REGISTRY_TOKEN": "abc\n"}, "Bearer abc"),
    ],
)
def test_credentials_are_read_from_the_environment(
    server: Server, environment: dict[str, str], sent: str | None
) -> None:
    found = configured_registry({URL: server.url + "/"}, {**environment, "SCHEMA_REGISTRY_URL": server.url})
    assert found is not None
    assert found.schema(3) == SCHEMA
    assert server.requests == [("/schemas/ids/3", sent)]
    assert "secret" not in repr(found)
    assert "abc" not in repr(found)


@pytest.mark.parametrize("token", ["s3cret\nmore", "s3cret\N{EURO SIGN}"])
def test_credentials_that_cannot_be_sent_are_not_shown(server: Server, token: str) -> None:
    found = configured_registry({}, {"SCHEMA_REGISTRY_TOKEN": token, "SCHEMA_REGISTRY_URL": server.url})
    assert found is not None
    with pytest.raises(RegistryUnavailableError, match="credentials have a character") as failed:
        found.schema(3)
    assert "s3cret" not in str(failed.value)


def test_the_address_is_read_from_the_config_or_the_environment() -> None:
    assert configured_registry({}, {}) is None
    found = configured_registry({}, {"SCHEMA_REGISTRY_URL": "https://one:8081, https://two:8081/"})
    assert found is not None
    assert found.urls == ("https://one:8081", "https://two:8081")
    for wrong in ("one:8081", "file:///etc/passwd", "https://me:secret@one"):
        with pytest.raises(ValueError, match=r"http|credentials") as refused:
            configured_registry({URL: wrong}, {})
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize("variable", ["SCHEMA_REGISTRY_USER_INFO", "SCHEMA_REGISTRY_TOKEN"])
@pytest.mark.parametrize("configured", ["", "https://registry.example", "https://registry.example:8081"])
def test_credentials_are_not_sent_to_a_host_that_only_a_document_names(
    server: Server, variable: str, configured: str
) -> None:
    environment = {variable: "me:s3cret", "SCHEMA_REGISTRY_URL": configured}
    for url in (server.url, f"https://registry.example,{server.url}", "http://registry.example"):
        with pytest.raises(ValueError, match="are not for") as refused:
            configured_registry({URL: url}, environment)
        assert "s3cret" not in str(refused.value)
    assert server.requests == []
    assert configured_registry({URL: server.url}, {"SCHEMA_REGISTRY_URL": configured}) == SchemaRegistry(
        (server.url,)
    )


@pytest.mark.parametrize("variable", ["SCHEMA_REGISTRY_USER_INFO", "SCHEMA_REGISTRY_TOKEN"])
def test_credentials_are_not_sent_without_tls(server: Server, variable: str) -> None:
    addresses = f"https://one.example,http://two.example:8081,{server.url}"
    environment = {variable: "me:s3cret", "SCHEMA_REGISTRY_URL": addresses}
    with pytest.raises(ValueError, match=r"without TLS: use https:// for http://two.example:8081$"):
        configured_registry({}, environment)
    assert configured_registry({}, {"SCHEMA_REGISTRY_URL": addresses}) is not None
    # On this machine no other one can read them.
    assert configured_registry({}, {**environment, "SCHEMA_REGISTRY_URL": server.url}) is not None


def test_an_address_with_the_default_port_is_the_same() -> None:
    environment = {"SCHEMA_REGISTRY_TOKEN": "s3cret", "SCHEMA_REGISTRY_URL": "https://Registry.example:443/"}
    assert configured_registry({URL: "https://registry.example/apis"}, environment) is not None


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(server: Server, code: int) -> None:
    class Redirecting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(code)
            self.send_header("Location", server.url + self.path)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as redirecting:
        Thread(target=redirecting.serve_forever, args=(0.02,), daemon=True).start()
        found = SchemaRegistry((f"http://127.0.0.1:{redirecting.server_port}",), "Bearer s3cret")
        with pytest.raises(RegistryUnavailableError, match=f"answered {code}"):
            found.schema(3)
        redirecting.shutdown()
    assert server.requests == []


def test_a_process_requests_each_schema_once(server: Server) -> None:
    schema_of = RegisteredSchemas(server.url)
    assert [schema_of(3), schema_of(3), schema_of(77), schema_of(77)] == [SCHEMA, SCHEMA, None, None]
    assert [path for path, _ in server.requests] == ["/schemas/ids/3", "/schemas/ids/77", "/schemas/ids/77"]


def test_a_schema_that_cannot_be_used_is_requested_and_compiled_once(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = []

    def counting(text: str) -> bytes:
        compiled.append(text)
        return run(text)

    run = protobuf_schemas._run_protoc
    monkeypatch.setattr(protobuf_schemas, "_run_protoc", counting)
    schema_of = RegisteredSchemas(server.url)
    for schema_id in (8, 9, 8, 9, 8):
        with pytest.raises(ValueError, match=r"invalid Protobuf schema: 1:10|refers to other schemas"):
            schema_of(schema_id)
    assert compiled == ["message A"]
    assert [path for path, _ in server.requests] == ["/schemas/ids/8", "/schemas/ids/9"]


def test_failures_of_the_registry_and_the_compiler_are_not_kept(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema_of = RegisteredSchemas(server.url)
    server.failures = 3
    with pytest.raises(RegistryUnavailableError):
        schema_of(12)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "grpc_tools", None)
        with pytest.raises(CompilerUnavailableError):
            schema_of(12)
    assert schema_of(12) == compile_schema(NOT_SHARED)


@pytest.mark.parametrize(
    ("subject", "failures", "found"),
    [
        ("none", 0, "no such subject"),
        ("orders-value", 9, "answered 503"),
        ("orders-value", None, "no registry"),
    ],
)
def test_an_application_does_not_start_without_its_schemas(
    server: Server, subject: str, failures: int | None, found: str
) -> None:
    server.failures = failures or 0
    config = {} if failures is None else {URL: server.url}
    with pytest.raises(ProblemsError) as refused:
        check_runnable(load_text(document(subject, config), "orders.json").documents[0])
    (problem,) = refused.value.problems
    assert subject in problem.summary
    assert found in (problem.found or "")


def document(subject: str, config: dict[str, str]) -> str:
    name = f"avro-registry:{subject}"
    steps = [
        {"stream": {"topic": "orders", "serdes": {"value": name}}},
        {"to": {"topic": "copies", "serdes": {"value": name}}},
    ]
    return json.dumps({"application": {"id": "shop", "config": config}, "topology": steps})
