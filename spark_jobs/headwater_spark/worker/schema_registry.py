"""Client of a schema registry with the API of Confluent's: Apicurio, Karapace and Redpanda have it, too.

See docs/adr/0016 for why it is our own.

`schema.registry.url` of the application, else the variable `SCHEMA_REGISTRY_URL`, is the address; several
addresses are separated by commas. Credentials are in `SCHEMA_REGISTRY_USER_INFO` (`user:password`) or
`SCHEMA_REGISTRY_TOKEN`, and in no message. They are sent only to addresses of `SCHEMA_REGISTRY_URL`: a
document may name any host. Certificates are verified by the CAs of the system, or of the file that
`SSL_CERT_FILE` names.
"""

import base64
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

import attrs
import structlog
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_exponential

from headwater.kafka.connection_settings import is_readable_by_others
from headwater_spark.engine.serdes import RegistryUnavailableError, SchemaOf, UnreadFields, no_registry
from headwater_spark.worker.protobuf_schemas import compile_schema

URL = "schema.registry.url"
_URL_VARIABLE = "SCHEMA_REGISTRY_URL"
_USER_VARIABLE = "SCHEMA_REGISTRY_USER_INFO"
_TOKEN_VARIABLE = "SCHEMA_REGISTRY_TOKEN"  # noqa: S105 - a variable's name
_TIMEOUT_SECONDS = 10
_ATTEMPTS = 3
_NOT_FOUND = 404
_MOST_BYTES = 16 << 20
_AVRO = "AVRO"
_PROTOBUF = "PROTOBUF"
_TYPES = (_AVRO, "JSON", _PROTOBUF)
_log = structlog.get_logger(__name__)


@attrs.frozen
class SchemaRegistry:
    """A schema registry. Requests try `urls` in order, and all of them again after a failure."""

    urls: tuple[str, ...]
    authorization: str | None = attrs.field(default=None, repr=False)

    def latest(self, subject: str, type_: str = _AVRO) -> str | None:
        """Return the latest version of a subject, as JSON with `id` and `schema`; None = no such subject.

        Raises:
            RegistryUnavailableError: No address answers.
            CompilerUnavailableError: protoc cannot run, of Protobuf.
            ValueError: The schema is not of this type, or refers to other schemas.
        """
        found = self._get(f"subjects/{urllib.parse.quote(subject, safe='')}/versions/latest")
        return (
            None
            if found is None
            else json.dumps({"id": found["id"], "schema": _schema_text(found, (type_,))})
        )

    def schema(self, schema_id: int) -> str | None:
        """Return the text of a schema, of Protobuf the compiled schema; None = no such id.

        Raises:
            RegistryUnavailableError: No address answers.
            CompilerUnavailableError: protoc cannot run, of Protobuf.
            ValueError: It has another type, refers to other schemas, or is Protobuf that is not compilable.
        """
        found = self._get(f"schemas/ids/{schema_id}")
        return None if found is None else _schema_text(found, _TYPES)

    @retry(
        retry=retry_if_exception_type(RegistryUnavailableError),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_exponential(0.2, max=2),
        reraise=True,
    )
    def _get(self, path: str) -> dict[str, Any] | None:
        failures = []
        for url in self.urls:
            try:
                return self._request(f"{url}/{path}")
            except urllib.error.HTTPError as error:
                if error.code == _NOT_FOUND:
                    return None
                failures.append(f"{url} answered {error.code} {error.reason}")
            except OSError as error:
                failures.append(f"{url}: {getattr(error, 'reason', error)}")
            except (json.JSONDecodeError, UnicodeDecodeError):
                failures.append(f"{url}: the answer is not JSON")
            except ValueError:  # its text has the credentials
                failures.append(f"{url}: the credentials have a character that no header may have")
        raise RegistryUnavailableError(f"the schema registry does not answer: {'; '.join(failures)}")

    def _request(self, url: str) -> dict[str, Any]:
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if self.authorization is not None:
            headers["Authorization"] = self.authorization
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - `configured_registry` checked the scheme
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=_TIMEOUT_SECONDS) as answer:
            content = answer.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise OSError("the answer is too large")
        found: dict[str, Any] = json.loads(content)
        return found


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which would send the credentials to another host."""

    def redirect_request(self, *_: Any) -> None:  # noqa: ANN401 - urllib's signature
        return None


@attrs.frozen
class RegisteredSchemas:
    """Returns schemas by id (`SchemaOf`). The driver creates it; each worker process has its own client.

    `url` is the application's `schema.registry.url`, None = the address is in the environment of the worker.
    """

    url: str | None

    def __call__(self, schema_id: int) -> str | None:
        return _schemas_of(self.url)(schema_id)


def log_unread_fields(unread: UnreadFields) -> None:
    """Log fields that the application does not read or pass on (`ReportUnread`), once in a process."""
    _log.warning(
        "fields of another schema version are not read",
        format=unread.format,
        fields=", ".join(unread.names),
        schema_id=unread.schema_id,
        schema_id_at_start=unread.id_at_start,
        fix="if the latest version of the subject has these fields, restart the application",
    )


def configured_registry(
    config: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> SchemaRegistry | None:
    """Return the registry of an application; None = no address is set.

    Raises:
        ValueError: An address is not valid, or has credentials, or would get credentials that are not for it.
    """
    addresses = config.get(URL) or environment.get(_URL_VARIABLE)
    if not addresses:
        return None
    urls = tuple(each.strip().rstrip("/") for each in addresses.split(","))
    for url in urls:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("the address of a schema registry starts with http:// or https://")
        if parts.username is not None:
            raise ValueError(f"set credentials in {_USER_VARIABLE} or {_TOKEN_VARIABLE}, not in an address")
    authorization = _authorization_header(environment)
    if authorization is not None:
        allowed = {_parse_origin(each.strip()) for each in environment.get(_URL_VARIABLE, "").split(",")}
        if foreign := [url for url in urls if _parse_origin(url) not in allowed]:
            raise ValueError(
                f"the credentials of the environment are not for {', '.join(foreign)}: they are sent only to "
                f"addresses in {_URL_VARIABLE}"
            )
        if plain := [url for url in urls if is_readable_by_others(url)]:
            raise ValueError(f"credentials are not sent without TLS: use https:// for {', '.join(plain)}")
    return SchemaRegistry(urls, authorization)


@lru_cache(maxsize=16)
def _schemas_of(url: str | None) -> SchemaOf:
    """Return a client for this process that requests each schema once, also a schema that cannot be used."""
    source = configured_registry({} if url is None else {URL: url})
    if source is None:
        return no_registry
    known: dict[int, str] = {}
    unusable: dict[int, str] = {}

    def schema_of(schema_id: int) -> str | None:
        if schema_id in unusable:
            raise ValueError(unusable[schema_id])
        if schema_id not in known:
            try:
                text = source.schema(schema_id)
            except ValueError as error:  # the schema of an id never changes
                unusable[schema_id] = str(error)
                raise
            if text is None:  # not stored: the schema may be registered later
                return None
            known[schema_id] = text
        return known[schema_id]

    return schema_of


def _parse_origin(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of an address; raises `ValueError` for a port that is no number."""
    parts = urllib.parse.urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname or "", port


def _authorization_header(environment: Mapping[str, str]) -> str | None:
    if token := environment.get(_TOKEN_VARIABLE, "").strip():
        return f"Bearer {token}"
    if user := environment.get(_USER_VARIABLE, "").strip():
        return f"Basic {base64.b64encode(user.encode()).decode()}"
    return None


def _schema_text(found: Mapping[str, Any], types: Collection[str]) -> str:
    type_ = found.get("schemaType", _AVRO)
    if type_ not in types:
        raise ValueError(f"the schema is {type_}, not {' or '.join(types)}")
    if found.get("references"):
        raise ValueError("the schema refers to other schemas in the registry, which is not supported")
    text = str(found["schema"])
    return compile_schema(text) if type_ == _PROTOBUF else text
