"""What a refusal of a mail server means for the mail.

Only a refusal of this very mail is final. All others are about the connection, the login, the sender or the server, so
every mail would get them until somebody mends that: the mail waits.

| refused | for good | waits |
|---|---|---|
| greeting, EHLO, STARTTLS, AUTH | | always |
| MAIL FROM | for its size | any other |
| RCPT TO (all addresses) | 5xx: there is no such address | 5.7.x, relaying denied, a login wanted, our name or sender |
| DATA | 5xx: this mail | 5.7.8 and above: our login, our domain, our rights; 530, 534, 535, 538 |

Source of the enhanced codes (5.7.1): the registry of RFC 5248.
"""

from __future__ import annotations

import re
import smtplib

from camgraph.pipeline.system.redaction import redacted_line

_ANSWER = 200
_TOO_LARGE = 552
_LARGE = (3, 4)
_OURS = frozenset({500, 502, 503, 504, 521, 530, 534, 535, 538})
"""Our command, our greeting, our login; a server that takes no mail at all."""
_OUR_SENDER = frozenset({(1, 7), (1, 8), (2, 252)})
"""2.252: of Exchange, "the sender may not send as this address"."""
_POLICY = 7
_OUR_RIGHTS = 8
"""From 5.7.8 on the codes are about credentials, accounts, SPF and DKIM; those before also about one mail."""
_ENHANCED = re.compile(r"\s*5\.(\d{1,3})\.(\d{1,3})\b")
_NOT_FOR_US = re.compile(r"(?i)relay|rcpthosts|authenti|helo command")


def is_for_good(error: smtplib.SMTPException) -> bool:
    """Whether the server refuses this mail for ever."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(code >= 500 and not _is_about_us(code, text) for code, text in error.recipients.values())
    if isinstance(error, smtplib.SMTPDataError):
        code = error.smtp_code
        return 500 <= code < 600 and code not in _OURS and not _are_our_rights(_detail(error.smtp_error))
    return is_about_size(error)


def is_about_size(error: smtplib.SMTPException) -> bool:
    """Whether a smaller mail might be taken."""
    if not isinstance(error, smtplib.SMTPSenderRefused | smtplib.SMTPDataError):
        return False
    detail = _detail(error.smtp_error)
    return error.smtp_code >= 500 and (detail == _LARGE or (error.smtp_code == _TOO_LARGE and detail in (None, _LARGE)))


def answer_of(error: smtplib.SMTPException) -> str:
    """The error in words for people."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return _addresses_refused(error)
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return f"{redacted_line(str(error), _ANSWER)}: choose another `security`, or no password"
    if isinstance(error, smtplib.SMTPServerDisconnected):
        return "it closed the connection"
    if not isinstance(error, smtplib.SMTPResponseException):
        return type(error).__name__
    answer = words_of(error.smtp_code, error.smtp_error)
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"it refuses the user or the password ({answer})"
    return _step(error) + answer


def _step(error: smtplib.SMTPResponseException) -> str:
    if isinstance(error, smtplib.SMTPSenderRefused):
        return f"it refuses the sender {error.sender}: "
    return "it takes no connection: " if isinstance(error, smtplib.SMTPConnectError | smtplib.SMTPHeloError) else ""


def _addresses_refused(error: smtplib.SMTPRecipientsRefused) -> str:
    refused = "; ".join(f"{one}: {words_of(code, text)}" for one, (code, text) in error.recipients.items())
    if any(code >= 500 and _is_about_us(code, text) for code, text in error.recipients.values()):
        return f"it does not deliver for us: mend `user`, `sender` or `server`, or its settings ({refused})"
    return f"it refuses all addresses: {refused}"


def words_of(code: int, text: bytes | str) -> str:
    """The answer, fit to be shown."""
    return f"{code} {redacted_line(_decoded(text), _ANSWER)}"


def _is_about_us(code: int, text: bytes | str) -> bool:
    """Whether an address was refused because of who asks: another one would have been, too."""
    detail = _detail(text)
    if code in _OURS or detail in _OUR_SENDER or (detail and detail[0] == _POLICY):
        return True
    return _NOT_FOR_US.search(_decoded(text)) is not None


def _are_our_rights(detail: tuple[int, int] | None) -> bool:
    return detail is not None and (detail in _OUR_SENDER or (detail[0] == _POLICY and detail[1] >= _OUR_RIGHTS))


def _detail(text: bytes | str) -> tuple[int, int] | None:
    """The last two numbers of an enhanced code at the beginning of the answer."""
    found = _ENHANCED.match(_decoded(text))
    return (int(found[1]), int(found[2])) if found else None


def _decoded(text: bytes | str) -> str:
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text)
