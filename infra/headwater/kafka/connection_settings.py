"""The addresses and security settings of a Kafka connection, as a user gave them."""

import attrs


def _redact_value(value: object) -> str:
    return "None" if value is None else "***"


@attrs.frozen(kw_only=True)
class ConnectionSettings:
    """Addresses and security settings, not checked. Secrets never show in `repr` or `str`.

    `protocol` and `mechanism` are spelled as in Kafka's client properties (see `connection_checks`). `ca`,
    `certificate` (with its chain) and `key` are PEM texts. For OAUTHBEARER, `username` and `password` are the
    client's id and secret at `token_url`. `skip_tls_verify` trusts any server certificate. `verify_hostname`
    off trusts a certificate for any host; the Pulumi provider then trusts any certificate.
    """

    bootstrap_servers: tuple[str, ...]
    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = attrs.field(default=None, repr=_redact_value)
    ca: str | None = attrs.field(default=None, repr=_redact_value)
    certificate: str | None = attrs.field(default=None, repr=_redact_value)
    key: str | None = attrs.field(default=None, repr=_redact_value)
    key_password: str | None = attrs.field(default=None, repr=_redact_value)
    skip_tls_verify: bool = False
    verify_hostname: bool = True
    token_url: str | None = None
    oauth_scopes: tuple[str, ...] = ()
    aws_region: str | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return every text that must not be printed. Certificates are public: `repr` hides their length."""
        return tuple(text for text in (self.password, self.key, self.key_password) if text)

    @property
    def uses_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")
