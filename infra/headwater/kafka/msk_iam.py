"""Signed tokens for Amazon MSK with IAM, by Amazon's own package: librdkafka cannot sign them."""

import re
from collections.abc import Callable, Iterable
from importlib import import_module

from headwater.kafka.connection_checks import setting_problem
from headwater.model.problems import ProblemsError

_MILLISECONDS = 1_000
_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?:")


def broker_region(bootstrap_servers: Iterable[str]) -> str | None:
    """Return the AWS region in the host names of MSK brokers, None for other brokers."""
    return next((match[1] for address in bootstrap_servers if (match := _HOST.search(address))), None)


def token_callback(region: str) -> Callable[[str], tuple[str, float]]:
    """Return librdkafka's `oauth_cb`: token, expiry in seconds since the epoch; raises `ProblemsError`."""
    try:
        signer = import_module("aws_msk_iam_sasl_signer").MSKAuthTokenProvider
    except ModuleNotFoundError:
        raise ProblemsError([_NOT_INSTALLED]) from None

    def token(_settings: str) -> tuple[str, float]:
        signed, expires_ms = signer.generate_auth_token(region)
        return signed, expires_ms / _MILLISECONDS

    return token


_NOT_INSTALLED = setting_problem(
    "SASL mechanism AWS_MSK_IAM needs the package aws-msk-iam-sasl-signer-python.",
    expected="the package in the environment that runs Headwater",
    found="not installed",
    fix="Run `pip install aws-msk-iam-sasl-signer-python`, or use SCRAM-SHA-512, which MSK also offers.",
)
