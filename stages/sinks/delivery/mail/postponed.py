"""Mails that some of their recipients have not got yet, since the server refuses these addresses for now.

    some take it, some are refused for now --add--> in the file --1, 2, 5, ... 60 min--> tried again for these alone
                              |                         `-- all are done, or time is up --> out of the file
                              |--the run is stopped--> stays in the file, for the next run of this name
                              '--all files are at their end--> tried once more, then given up

A server refuses an address for now (450, 451, 452) if it greylists, or a mailbox is full. The others must not get the
mail twice meanwhile, and later mails must not wait. The file lies beside the dead letters, since it has to outlive the
run if the power is cut.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from camgraph.pipeline.dead_letters import DeadLetter, read_letter
from camgraph.pipeline.messages import Event
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.disk import write_whole

PAUSES_S = (60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
"""Before the first further try, the second and so on; the last one is kept."""
MOST = 1000
"""Most postponed mails; beyond, the oldest is given up."""
_CLOSED_S = 2.0


@dataclass(frozen=True)
class PostponedMail:
    """A mail and the recipients who still lack it. `since_ns` is UTC since 1970."""

    event: Event
    why: Mapping[str, str]
    """Address -> the server's last refusal."""
    since_ns: int
    tries: int = 1

    def line(self) -> str:
        letter = DeadLetter("", "", self.since_ns, self.tries, self.event)
        return json.dumps({"why": dict(self.why), "letter": json.loads(letter.line())})


class Postponed:
    """See the module. A thread tries again; all methods may be called from any other."""

    def __init__(self, file: Path, try_again: Callable[[PostponedMail], PostponedMail | None], log: Logger) -> None:
        """`try_again` returns what is left then, None if that is nothing. The thread calls it for one at a time."""
        self._file, self._try_again, self._log = file, try_again, log
        self._mails: dict[str, tuple[PostponedMail, float]] = {}
        """Id of an event -> the rest, and when it is tried again, in monotonic seconds."""
        self._changed = threading.Condition()
        self._trying = ""
        """The id of the event whose mail is on the way at present."""
        self._last_until = math.inf
        """Until when the last tries may begin, in monotonic seconds; infinite while more tries follow."""
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def load(self) -> None:
        """Go on with the mails in the file, at once. A line that cannot be read costs that line alone."""
        try:
            lines = self._file.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return
        except OSError as error:
            self._log.warning("postponed_mails_not_read", file=str(self._file), why=error.strerror)
            return
        found = [rest for line in lines if (rest := self._read(line)) is not None]
        with self._changed:
            self._mails = {rest.event.id: (rest, 0.0) for rest in found}
            self._wake()
        if found:
            self._log.info("postponed_mails_found", mails=len(found), file=str(self._file))

    def _read(self, line: str) -> PostponedMail | None:
        try:
            return _read_mail(line)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            self._log.warning("postponed_mails_not_read", file=str(self._file), why=str(error))
            return None

    def add(self, rest: PostponedMail) -> PostponedMail | None:
        """Returns the oldest if there are too many of them: it is given up."""
        with self._changed:
            self._mails[rest.event.id] = rest, time.monotonic() + PAUSES_S[0]
            oldest = self._oldest() if len(self._mails) > MOST else None
            self._keep()
            self._wake()
        return oldest

    def _oldest(self) -> PostponedMail:
        """Take out the oldest mail, but not the one that is on the way: its recipients may get it after all."""
        return self._mails.pop(next(one for one in self._mails if one != self._trying))[0]

    def try_last(self, within_s: float) -> bool:
        """Let each mail be tried once more, and then no more. Returns whether that is over: call again until it is.

        After `within_s` from the first call no try begins any more; one that is on the way comes to its end.
        """
        with self._changed:
            if math.isinf(self._last_until):
                self._last_until = time.monotonic() + within_s
                self._mails = {one: (rest, 0.0) for one, (rest, _) in self._mails.items()}
                self._changed.notify_all()
        return self._thread is None or not self._thread.is_alive()

    def give_up(self, write: Callable[[PostponedMail], None]) -> None:
        """Hand each mail that is left to `write`, and forget the mail once `write` has returned.

        Call it once `try_last` is over: otherwise somebody may still get a mail that is given up. What `write` raises
        is raised; the mails that are left stay, for another call.
        """
        for rest in [rest for rest, _ in self._mails.values()]:
            write(rest)
            with self._changed:
                self._mails.pop(rest.event.id, None)
                self._keep()

    def close(self) -> Sequence[PostponedMail]:
        """What is left stays in the file. Returns the mails that could not be written into the file."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSED_S)
        with self._changed:
            if self._mails and not self._keep():
                return [rest for rest, _ in self._mails.values()]
        if self._mails:
            self._log.warning("postponed_mails_left", mails=len(self._mails), kept_in=str(self._file))
        return []

    def _wake(self) -> None:
        if self._thread is None and self._mails:
            self._thread = threading.Thread(target=self._work, name="postponed", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _work(self) -> None:
        while (rest := self._next()) is not None:
            try:
                left = self._try_again(rest)
            except Exception as error:  # noqa: BLE001 - the others of the file are tried all the same
                self._log.exception("postponed_mail_failed", id=rest.event.own_id, error=type(error).__name__)
                left = rest
            with self._changed:
                self._tried(rest, left)

    def _tried(self, rest: PostponedMail, left: PostponedMail | None) -> None:
        """Note what is left, also while it closes: at the next start, whoever has the mail would get it once more."""
        self._trying = ""
        if left is None:
            del self._mails[rest.event.id]
        elif self._is_closed:  # the connection was cut, which is no answer of the server
            kept = replace(rest, why={one: rest.why[one] for one in left.why})
            self._mails[rest.event.id] = kept, math.inf
        else:
            left = replace(left, tries=rest.tries + 1)
            pause_s = PAUSES_S[min(left.tries, len(PAUSES_S)) - 1] if math.isinf(self._last_until) else math.inf
            self._mails[rest.event.id] = left, time.monotonic() + pause_s
        self._keep()

    def _next(self) -> PostponedMail | None:
        """Wait until one is due; None once there is none to try any more."""
        with self._changed:
            while not self._is_over:
                rest, due_s = min(self._mails.values(), key=lambda one: one[1], default=(None, math.inf))
                now_s = time.monotonic()
                if rest is not None and due_s <= now_s:
                    self._trying = rest.event.id
                    return rest
                self._changed.wait(None if math.isinf(due_s) else due_s - now_s)
        return None

    @property
    def _is_over(self) -> bool:
        """Whether no try begins any more."""
        if math.isinf(self._last_until) or self._is_closed:
            return self._is_closed
        return time.monotonic() > self._last_until or all(math.isinf(due_s) for _, due_s in self._mails.values())

    def _keep(self) -> bool:
        """Whether the file has the mails that are left."""
        try:
            if self._mails:
                self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                text = "".join(f"{rest.line()}\n" for rest, _ in self._mails.values())
                write_whole(self._file, text.encode(), durable=True, mode=0o600)
            else:
                self._file.unlink(missing_ok=True)
                with suppress(OSError):
                    self._file.parent.rmdir()  # if it is empty
        except OSError as error:
            self._log.warning("postponed_mails_not_kept", file=str(self._file), why=error.strerror)
            return False
        return True


def _read_mail(line: str) -> PostponedMail:
    """Raises ValueError, KeyError, TypeError or AttributeError for a line that was not written here."""
    values = json.loads(line)
    letter = read_letter(json.dumps(values["letter"]).encode())
    if letter is None:
        raise ValueError("it holds no event")
    why = {str(address): str(answer) for address, answer in values["why"].items()}
    return PostponedMail(letter.event, why, letter.at_ns, letter.attempts)
