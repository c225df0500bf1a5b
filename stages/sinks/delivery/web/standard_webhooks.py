"""Signatures by which a receiver knows that a request is ours and new: https://www.standardwebhooks.com

    webhook-id: 5f0c...            the same each time this event is sent
    webhook-timestamp: 1767268800  seconds since 1970, of this attempt
    webhook-signature: v1,K5oZ... v1,bm9l...     HMAC-SHA256 of `id.timestamp.body`, one for each secret

While a secret is replaced by another, both sign: the receiver takes a request if one of the signatures is right.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

_PREFIX = "whsec_"
_LEAST, _MOST = 24, 64
"""Bytes of a secret."""


def secret_bytes(secret: str) -> bytes:
    """The key in `whsec_...`. Raises ValueError, whose text holds nothing of it."""
    if not secret.startswith(_PREFIX):
        raise ValueError(f"expected {_PREFIX} and then {_LEAST} to {_MOST} bytes in base64")
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"expected {_PREFIX} and then base64, and this is none") from None
    if not _LEAST <= len(key) <= _MOST:
        raise ValueError(f"expected {_LEAST} to {_MOST} bytes in base64 behind {_PREFIX}, got {len(key)} bytes")
    return key


def signed_headers(secrets: Sequence[str], message_id: str, now_s: int, body: bytes) -> dict[str, str]:
    """The three headers of an attempt; no signature if there is no secret."""
    headers = {"webhook-id": message_id, "webhook-timestamp": str(now_s)}
    signed = f"{message_id}.{now_s}.".encode() + body
    signatures = [hmac.new(secret_bytes(secret), signed, hashlib.sha256).digest() for secret in secrets]
    if signatures:
        headers["webhook-signature"] = " ".join(f"v1,{base64.b64encode(one).decode()}" for one in signatures)
    return headers
