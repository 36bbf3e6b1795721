"""Digests and encodings of strings and bytes."""

import base64
import hashlib
import zlib
from collections.abc import Mapping

from headwater_spark.engine.expressions.casts import to_text, to_whole
from headwater_spark.engine.expressions.faults import EvaluationError
from headwater_spark.engine.expressions.functions.table import Function, strict
from headwater_spark.engine.records import Value


def _data(value: Value) -> bytes:
    return value if type(value) is bytes else to_text(value).encode()


def sha2(value: Value, bits: Value) -> Value:
    digest = _SHA2.get(to_whole(bits))
    return digest(_data(value)).hexdigest() if digest is not None else None


_SHA2 = {
    0: hashlib.sha256,
    224: hashlib.sha224,
    256: hashlib.sha256,
    384: hashlib.sha384,
    512: hashlib.sha512,
}


def unbase64(value: Value) -> Value:
    try:
        return base64.b64decode(_data(value), validate=True)
    except ValueError:
        raise EvaluationError("a STRING is not valid base64") from None


def unhex(value: Value) -> Value:
    text = to_text(value)
    try:
        return bytes.fromhex(text if len(text) % 2 == 0 else "0" + text)
    except ValueError:
        return None


FUNCTIONS: Mapping[str, Function] = {
    "md5": strict(lambda value: hashlib.md5(_data(value), usedforsecurity=False).hexdigest(), 1),
    "sha": strict(lambda value: hashlib.sha1(_data(value), usedforsecurity=False).hexdigest(), 1),
    "sha1": strict(lambda value: hashlib.sha1(_data(value), usedforsecurity=False).hexdigest(), 1),
    "sha2": strict(sha2, 2),
    "crc32": strict(lambda value: zlib.crc32(_data(value)), 1),
    "base64": strict(lambda value: base64.b64encode(_data(value)).decode(), 1),
    "unbase64": strict(unbase64, 1),
    "unhex": strict(unhex, 1),
}
