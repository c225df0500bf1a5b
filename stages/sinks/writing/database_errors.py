"""Which errors of SQLite say that a file is damaged, and which that it cannot be used now."""

from __future__ import annotations

import sqlite3

_NOT_NOW = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_NOMEM,
)


def primary_code(error: Exception) -> int:
    """SQLite's primary result code; 0 if the error has none, such as one of Python's own."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def is_damage(error: Exception) -> bool:
    """Whether waiting would not help: the file is damaged, or it is no such file."""
    return primary_code(error) not in _NOT_NOW
