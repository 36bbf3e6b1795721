"""Request tokens for SASL OAUTHBEARER from an OAuth server (RFC 6749, section 4.4), or for Amazon MSK."""

import base64
import json
from ssl import SSLError
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from headwater.kafka.client_settings import token_callback
from headwater.kafka.connection_settings import ConnectionSettings
from headwater.model.problems import ProblemsError

_REQUEST_SECONDS = 10.0
_MOST_BYTES = 1 << 20


def request_token(settings: ConnectionSettings) -> str:
    """Return a token for the brokers; raises `OSError`. No text of an error contains a secret."""
    try:
        if settings.mechanism == "AWS_MSK_IAM":
            return token_callback(settings.aws_region or "")("")[0]
        return _oauth_token(settings)
    except ProblemsError as error:
        raise OSError(error.problems[0].summary) from None
    except HTTPError as error:
        error.close()
        raise OSError(f"no OAUTHBEARER token: the token URL answers {error.code}") from None
    except (OSError, ValueError) as error:
        # A connection that is not established in time is a `URLError` with this reason.
        if isinstance(error, TimeoutError) or isinstance(getattr(error, "reason", None), TimeoutError):
            raise OSError(
                f"no OAUTHBEARER token: no answer of the token URL within {_REQUEST_SECONDS:g} s"
            ) from None
        reason = getattr(error, "reason", None)
        if isinstance(reason, OSError) and not isinstance(reason, SSLError):
            raise OSError(f"no OAUTHBEARER token: no connection to the token URL: {reason}") from None
        raise OSError(f"no OAUTHBEARER token: {error}") from None
    except Exception as error:  # noqa: BLE001 - the classes of Amazon's library are not imported here
        raise OSError(f"no AWS_MSK_IAM token: {type(error).__name__}") from None


class _NoRedirect(HTTPRedirectHandler):
    """A redirect would send the client's secret to another server."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def _oauth_token(settings: ConnectionSettings) -> str:
    url = settings.token_url or ""
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("the token URL is not an HTTP URL")
    fields = {"grant_type": "client_credentials"}
    if settings.oauth_scopes:
        fields["scope"] = " ".join(settings.oauth_scopes)
    client = base64.b64encode(f"{settings.username}:{settings.password}".encode()).decode()
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {client}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    request = Request(url, urlencode(fields).encode(), headers)  # noqa: S310 - the scheme is checked
    with build_opener(_NoRedirect()).open(request, timeout=_REQUEST_SECONDS) as response:
        answer = json.loads(response.read(_MOST_BYTES))
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise ValueError("the answer of the token URL has no access_token")
    return token
