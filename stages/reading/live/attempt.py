"""One try to connect to a camera, by its times. Pure: times are arguments, in monotonic seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Attempt:
    """When it was begun, and when it brought its first picture."""

    begun_s: float
    picture_s: float | None = None

    @property
    def succeeded(self) -> bool:
        """Whether it has brought a picture."""
        return self.picture_s is not None

    def picture(self, now_s: float) -> None:
        """It brought a picture."""
        self.picture_s = now_s if self.picture_s is None else self.picture_s

    def opening_s(self, now_s: float) -> float:
        """How long it took to the first picture, or has taken without one."""
        return (now_s if self.picture_s is None else self.picture_s) - self.begun_s

    def live_s(self, now_s: float) -> float:
        """For how long it has been live, 0 if it never was."""
        return 0.0 if self.picture_s is None else now_s - self.picture_s
