"""Times of day at which rules are judged: periods of the week in a time zone, across midnight and over clock changes.

    night: {from: "21:00", to: "06:00", days: [fri]}      from Friday 21:00 to Saturday 06:00

A period begins when the clock shows `from` for the first time, and ends when it shows `to` for the last time. So in the
night in which an hour happens twice no period is broken, and a time that the clock skips is the moment of the skip.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from camgraph.pipeline.stage import Settings
from camgraph.stages.video.dates import zone_of

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun", "holidays"]
_DAYS: tuple[Day, ...] = get_args(Day)
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])|(24):(00)")
_HOLIDAY = re.compile(r"(?:([0-9]{4})-)?([0-9]{2})-([0-9]{2})")
_ANY_YEAR = 2000
"""A leap year: of a holiday without a year, 02-29 is a day."""
_AROUND = 2
"""Days before and after the present one whose periods may concern it: a period lasts a day at most."""


def minutes(text: str) -> int:
    """`21:30` in minutes since midnight; `24:00` is the end of the day. Raises ValueError."""
    found = _TIME.fullmatch(text)
    if not found:
        raise ValueError(f'expected a time of day such as "06:30" or "21:00", got {text[:20]!r}')
    return int(found[1] or found[3]) * 60 + int(found[2] or found[4])


def _time_of_day(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f'expected a time of day in quotes, such as "21:00", got {value!r:.40}')
    minutes(value)
    return value


def _holiday(value: Any) -> str:
    found = _HOLIDAY.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise ValueError(f"expected a date such as 2026-12-24, or 12-25 for every year, got {value!r:.40}")
    try:
        date(int(found[1] or _ANY_YEAR), int(found[2]), int(found[3]))
    except ValueError:
        raise ValueError(f"there is no day {value}") from None
    return str(value)


def _zone(text: str) -> str:
    zone_of(text)
    return text


TimeOfDay = Annotated[
    str, BeforeValidator(_time_of_day), WithJsonSchema({"type": "string", "pattern": f"^({_TIME.pattern})$"})
]
Holiday = Annotated[
    str, BeforeValidator(_holiday), WithJsonSchema({"type": "string", "pattern": f"^{_HOLIDAY.pattern}$"})
]
Zone = Annotated[str, AfterValidator(_zone)]


class PeriodDefinition(Settings):
    """From one time of day to another; if `to` is not after `from`, to that of the next day."""

    from_: TimeOfDay = Field(alias="from", description='When it begins, such as "21:00"')
    to: TimeOfDay = Field(description='When it ends, such as "06:00", or "24:00" for the end of the day')
    days: list[Day] | None = Field(
        None, min_length=1, description="The days on which it begins: mon to sun, holidays; every day by default"
    )
    except_: Literal["holidays"] | None = Field(None, alias="except", description="Does not begin on holidays")

    @field_validator("from_")
    @classmethod
    def _not_the_end(cls, begin: str) -> str:
        if minutes(begin) == minutes("24:00"):
            raise ValueError('24:00 is the end of a day, for `to`: write "00:00" if the period begins at midnight')
        return begin

    @model_validator(mode="before")
    @classmethod
    def _days_as_list(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("days"), str):
            return {**value, "days": [value["days"]]}
        return value


def _periods(value: Any) -> Any:
    """`{from: ..., to: ...}` is the only period. Raises ValueError for a text, such as `21:00-06:00`."""
    if isinstance(value, str):
        raise ValueError(f'expected times of day such as {{from: "21:00", to: "06:00"}}, got {value!r:.40}')
    return [value] if isinstance(value, dict) else value


PeriodDefinitions = Annotated[list[PeriodDefinition], Field(min_length=1, max_length=100), BeforeValidator(_periods)]


@dataclass(frozen=True, slots=True)
class _Period:
    begin: int
    """Minutes since midnight of its day."""
    end: int
    """Likewise: more than a day's if it ends on the next one."""
    days: frozenset[Day]
    but_holidays: bool

    def begins_on(self, day: date, *, holiday: bool) -> bool:
        if holiday and self.but_holidays:
            return False
        return _DAYS[day.weekday()] in self.days or (holiday and "holidays" in self.days)


class Schedule:
    """Whether it is time, by the clock of a zone. Remembers the last answer for as long as it holds."""

    def __init__(self, periods: Sequence[PeriodDefinition], zone: tzinfo, holidays: Collection[str] = ()) -> None:
        self._periods = [_period(one) for one in periods]
        self._zone = zone
        self._holidays = frozenset(holidays)
        self._known = (0, 0, False)
        """From, until (seconds since 1970), and whether it was time then."""

    def is_time(self, wall_ns: int) -> bool:
        """Whether a moment (nanoseconds since 1970, UTC) lies in one of the periods.

        Never, in a year without a calendar.
        """
        second = wall_ns // 1_000_000_000
        begin, end, answer = self._known
        if not begin <= second < end:
            try:
                self._known = begin, end, answer = self._look_up(second)
            except (OverflowError, ValueError):  # a broken clock, outside of the years 1 to 9999
                return False
        return answer

    def _look_up(self, second: int) -> tuple[int, int, bool]:
        """The answer, and the time around the second in which it is the same, as far as it is known."""
        today = _local(second, self._zone).date()
        begin, end, answer = second - 3600, second + 3600, False
        for first, last in self._spans(today):
            if first <= second < last:
                begin, end, answer = (first, last, True) if not answer else (max(begin, first), max(end, last), True)
        if answer:
            return begin, end, True
        for first, last in self._spans(today):
            begin = max(begin, last) if last <= second else begin
            end = min(end, first) if first > second else end
        return begin, end, False

    def _spans(self, today: date) -> Iterator[tuple[int, int]]:
        """The periods of the days around this one, each from its first second to the one after its last."""
        for offset in range(-_AROUND, _AROUND + 1):
            day = today + timedelta(days=offset)
            holiday = day.isoformat() in self._holidays or f"{day:%m-%d}" in self._holidays
            for period in self._periods:
                if period.begins_on(day, holiday=holiday):
                    midnight = datetime(day.year, day.month, day.day)
                    first = _first(midnight + timedelta(minutes=period.begin), self._zone)
                    last = _last(midnight + timedelta(minutes=period.end), self._zone)
                    if first < last:
                        yield first, last


def _period(definition: PeriodDefinition) -> _Period:
    begin, end = minutes(definition.from_), minutes(definition.to)
    days = frozenset(definition.days) if definition.days is not None else frozenset(_DAYS[:7])
    return _Period(begin, end if end > begin else end + 24 * 60, days, definition.except_ is not None)


def _local(second: int, zone: tzinfo) -> datetime:
    """What a clock shows."""
    return datetime.fromtimestamp(second, zone).replace(tzinfo=None)


def _first(shown: datetime, zone: tzinfo) -> int:
    """The second in which a clock first shows this or more."""
    return min(_seconds(shown, zone))


def _last(shown: datetime, zone: tzinfo) -> int:
    """The last second in which a clock shows no more than this."""
    return max(_seconds(shown, zone))


def _seconds(shown: datetime, zone: tzinfo) -> tuple[int, int]:
    """The seconds in which a clock shows this: twice the same, but for an hour that happens twice.

    Of a time that the clock skips it is the second of the skip.
    """
    one, other = (int(shown.replace(tzinfo=zone, fold=fold).astimezone(UTC).timestamp()) for fold in (0, 1))
    if _local(one, zone) == shown:
        return one, other
    before, after = sorted((one, other))
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (before, middle) if _local(middle, zone) >= shown else (middle, after)
    return after, after


@dataclass(frozen=True, slots=True)
class Times:
    """When a rule is judged: in the time of one of `during` (if any), and of none of `not_during`."""

    during: tuple[str, ...] = ()
    not_during: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.during or self.not_during)

    def fit(self, schedules: Mapping[str, Schedule], wall_ns: int) -> bool:
        if self.during and not any(schedules[name].is_time(wall_ns) for name in self.during):
            return False
        return not any(schedules[name].is_time(wall_ns) for name in self.not_during)
