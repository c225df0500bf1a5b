"""Takes credentials out of what people see."""

from __future__ import annotations

import re

# The name of the protocol is as long as any is: a long word without one must not be looked through from each letter.
_USERINFO = re.compile(r"(?P<head>[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s:/?#@'\"]*):[^\s'\"]*@")
_QUERY = re.compile(r"(?P<head>[?&][^=&\s]*(?:pass|pwd|secret|token|key|auth)[^=&\s]*=)[^&\s'\"#]+", re.IGNORECASE)


def redact_urls(text: str) -> str:
    """`text` with the password of every URL in it, and what its query calls a password or token, as `***`.

    A password that holds `/` or `@` without being percent-encoded is found as well: everything up to the last `@` goes.
    """
    return _QUERY.sub(r"\g<head>***", _USERINFO.sub(r"\g<head>:***@", text))
