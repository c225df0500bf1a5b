"""FFmpeg's errors, in words that may be shown."""

from __future__ import annotations


def reason_of(error: Exception) -> str:
    """The error without the address: FFmpeg's own text of an error holds the address with its password."""
    return getattr(error, "strerror", None) or type(error).__name__
