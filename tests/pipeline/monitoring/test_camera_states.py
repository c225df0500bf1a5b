"""The state of a live camera, from its source's reports and the fate of its process."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.monitoring.camera_states import MOST_DEPARTED, CameraStates, Change, LossOver, Over
from camgraph.pipeline.stage import AWAY, AwayState, CameraState

S = 1_000_000_000
LIVE_CAMERAS = ("front", "yard")
ALL_STATES: list[CameraState] = ["connecting", "live", *sorted(AWAY)]


def keeper() -> CameraStates:
    return CameraStates([*LIVE_CAMERAS, "file"], LIVE_CAMERAS, now_ns=0)


def changes_after(states: CameraStates, *reported: CameraState) -> list[Change | None]:
    """One word a second, from 1 s on."""
    return [states.reported("front", state, f"why {n}", (n + 1) * S) for n, state in enumerate(reported)]


def losses(changes: list[Change | None]) -> list[tuple[str, int, float | None]]:
    return [(change.state, change.loss, change.lost_s) for change in changes if change and change.loss]


def test_each_change_says_what_it_was_before_and_for_how_long() -> None:
    first, second, third = changes_after(keeper(), "connecting", "live", "lost")
    assert first == Change("front", "connecting", "why 0", "starting", 1.0, S)
    assert second == Change("front", "live", "why 1", "connecting", 1.0, 2 * S)
    assert third == Change("front", "lost", "why 2", "live", 1.0, 3 * S, loss=1)


def test_repeated_state_only_updates_the_reason() -> None:
    states = keeper()
    assert changes_after(states, "lost", "lost", "lost")[1:] == [None, None]
    now = states.now(4 * S)["front"]
    assert (now.state, now.why, now.since_s, now.losses) == ("lost", "why 2", 3.0, 1)


@pytest.mark.parametrize("state", sorted(AWAY))
def test_away_is_lost_and_live_is_back(state: AwayState) -> None:
    assert losses(changes_after(keeper(), "live", state, "live")) == [(state, 1, None), ("live", 1, 1.0)]


@pytest.mark.parametrize("state", sorted(AWAY))
def test_unreachable_from_the_start_is_lost(state: AwayState) -> None:
    assert losses(changes_after(keeper(), "connecting", state)) == [(state, 1, None)]
    assert losses(changes_after(keeper(), state)) == [(state, 1, None)]


def test_another_kind_of_loss_is_a_change_and_no_other_loss() -> None:
    changes = changes_after(keeper(), "live", "stalled", "lost", "unauthorised", "gone", "lost", "live")
    assert all(changes)
    assert losses(changes) == [("stalled", 1, None), ("live", 1, 5.0)]


def test_each_loss_has_its_number() -> None:
    states = keeper()
    changes = changes_after(states, "live", "lost", "live", "stalled", "live")
    assert [number for _, number, _ in losses(changes)] == [1, 1, 2, 2]
    assert states.now(9 * S)["front"].losses == 2


def test_death_is_a_loss_until_successor_is_live() -> None:
    states = keeper()
    changes_after(states, "connecting", "live")
    died = states.died("front", "signal 9", 5 * S)
    assert died == Change("front", "lost", "signal 9", "live", 3.0, 5 * S, loss=1)
    assert states.reported("front", "connecting", "", 6 * S) is None
    assert states.now(7 * S)["front"].state == "lost"
    assert states.now(7 * S)["front"].why == "signal 9"
    back = states.reported("front", "live", "", 8 * S)
    assert back
    assert (back.was, back.loss, back.lost_s) == ("lost", 1, 3.0)


def test_a_process_that_keeps_dying_is_one_loss() -> None:
    states = keeper()
    changes_after(states, "live")
    changes: list[Change | None] = []
    for n in range(5):
        changes.append(states.died("front", f"death {n}", (2 + 2 * n) * S))
        changes.append(states.reported("front", "connecting", "", (3 + 2 * n) * S))
    assert [change for change in changes if change] == changes[:1]
    assert states.now(20 * S)["front"].why == "death 4"


def test_death_while_away_is_no_second_loss() -> None:
    states = keeper()
    changes_after(states, "live", "unauthorised")
    died = states.died("front", "signal 9", 5 * S)
    assert died
    assert (died.state, died.loss) == ("lost", 0)


def test_the_death_of_a_file_s_process_is_no_loss() -> None:
    assert keeper().died("file", "signal 9", S) is None


def test_silent_source_lives_by_frames_and_dies_by_process() -> None:
    states = keeper()
    assert states.now(S)["yard"].state == ""
    first, again = states.brought("yard", 1, S), states.brought("yard", 2, 2 * S)
    assert first
    assert (first.state, first.loss, again) == ("live", 0, None)
    lost, back = states.died("yard", "signal 9", 3 * S), states.brought("yard", 2, 5 * S)
    assert losses([lost, back]) == [("lost", 1, None), ("live", 1, 2.0)]
    assert states.brought("file", 1, S) is None


def test_the_frames_of_a_source_that_speaks_say_nothing() -> None:
    states = keeper()
    changes_after(states, "live", "stalled")
    assert states.brought("front", 9, 5 * S) is None
    assert states.now(6 * S)["front"].state == "stalled"


def test_after_its_end_and_after_the_stop_no_camera_is_lost() -> None:
    states = keeper()
    changes_after(states, "live")
    states.ended("front", "end", 2 * S)
    assert changes_after(states, "lost") == [None]
    assert states.died("front", "signal 9", 9 * S) is None
    states.brought("yard", 1, S)
    states.stop()
    assert states.died("yard", "signal 9", 9 * S) is None
    assert states.now(9 * S)["yard"].state == "live"


def test_of_those_that_were_never_live_is_said_how_they_are() -> None:
    states = keeper()
    changes_after(states, "connecting")
    assert states.absent() == {}
    changes_after(states, "unauthorised")
    states.reported("yard", "live", "", S)
    states.reported("yard", "lost", "cable", 2 * S)
    assert states.absent() == {"front": "unauthorised: why 0"}
    states.stop()
    states.end_losses(3 * S)
    states.ended("front", "stopped", 4 * S)
    assert states.absent() == {"front": "unauthorised: why 0"}


def test_one_that_was_taken_out_of_the_run_is_not_among_them() -> None:
    states = keeper()
    changes_after(states, "lost")
    states.follow(["yard"], ["yard"], 5 * S)
    assert states.absent() == {}


def test_absent_excludes_camera_live_before_new_settings() -> None:
    states = keeper()
    changes_after(states, "live")
    states.follow(["yard"], ["yard"], 5 * S, wanted=["front", "yard"])
    states.follow(["front", "yard"], ["front", "yard"], 6 * S)
    assert states.reported("front", "unauthorised", "401", 7 * S)
    assert states.absent() == {}


def begun_anew() -> CameraStates:
    """`front` has other settings since 6 s."""
    states = keeper()
    states.follow(["yard"], LIVE_CAMERAS, 5 * S, wanted=LIVE_CAMERAS)
    states.follow(LIVE_CAMERAS, LIVE_CAMERAS, 6 * S)
    return states


def test_reports_from_before_readding_are_ignored() -> None:
    states = begun_anew()
    assert states.reported("front", "live", "", 6 * S - 1) is None
    assert states.reported("front", "lost", "cable", 5 * S) is None
    assert states.now(6 * S)["front"].state == ""
    change = states.reported("front", "connecting", "", 6 * S)
    assert change
    assert (change.state, change.was) == ("connecting", "starting")


def test_the_frames_of_a_namesake_that_went_make_no_camera_live() -> None:
    states = begun_anew()
    assert states.brought("front", 120, 6 * S) is None, "the last word of the process that it had before"
    assert states.brought("front", 120, 7 * S) is None
    change = states.brought("front", 121, 8 * S)
    assert change
    assert change.state == "live"


def test_the_frames_of_its_next_process_are_its_own() -> None:
    states = begun_anew()
    states.brought("front", 120, 6 * S)
    states.died("front", "signal 9", 7 * S)
    assert losses([states.brought("front", 3, 8 * S)]) == [("live", 1, 1.0)]


def test_facts_are_the_newest_and_outlive_a_death() -> None:
    states = keeper()
    states.shows("front", {"codec": "h264", "width": 1280})
    states.shows("front", {"codec": "hevc"})
    states.died("front", "signal 9", S)
    states.shows("nobody", {"codec": "x"})
    assert states.now(S)["front"].facts == {"codec": "hevc"}


def test_readded_camera_keeps_its_loss_count() -> None:
    states = keeper()
    changes_after(states, "live", "lost")
    states.follow(["yard", "new"], ["yard", "new"], 5 * S)
    assert states.reported("front", "live", "", 6 * S) is None
    assert states.brought("new", 1, 6 * S)
    states.follow(["front", "yard", "new"], ["front", "yard", "new"], 7 * S)
    assert states.now(8 * S)["front"].state == ""
    assert losses([states.reported("front", "gone", "", 9 * S)]) == [("gone", 2, None)]
    assert states.now(9 * S)["front"].losses == 2
    assert states.now(9 * S)["new"].state == "live"


def test_a_loss_is_over_when_its_camera_goes_or_begins_anew() -> None:
    for wanted, reason in ((["yard"], "removed"), (["front", "yard"], "replaced")):
        states = keeper()
        changes_after(states, "unauthorised")
        assert states.ended("front", "removed", 3 * S) == Over("unauthorised", 2.0)
        over = states.follow(["yard"], ["yard"], 5 * S, wanted=wanted)
        assert [(one.camera, one.reason, one.loss, one.lost_s) for one in over] == [("front", reason, 1, 4.0)]
        assert states.follow(["front", "yard"], ["front", "yard"], 6 * S) == []
        assert losses([states.reported("front", "live", "", 7 * S)]) == []


def test_loss_ends_with_its_camera_or_the_run() -> None:
    states = keeper()
    states.reported("front", "lost", "", 1 * S)
    states.reported("yard", "stalled", "", 2 * S)
    loss = LossOver("front", "error", 4 * S, 1, 3.0)
    assert states.ended("front", "error", 4 * S) == Over("lost", 3.0, loss)
    assert states.ended("front", "error", 5 * S) is None
    states.stop()
    assert states.end_losses(6 * S) == [LossOver("yard", "stopped", 6 * S, 2, 4.0)]
    assert states.end_losses(7 * S) == []
    assert states.ended("yard", "stopped", 8 * S) == Over("stalled", 6.0)
    assert states.follow([], [], 9 * S) == []


def test_memory_of_departed_cameras_is_bounded() -> None:
    states, numbers = keeper(), set[int]()
    for n in range(MOST_DEPARTED + 50):
        states.follow(["front", f"new{n}"], ["front", f"new{n}"], n * S)
        change = states.reported(f"new{n}", "lost", "", n * S)
        assert change
        numbers.add(change.loss)
    assert len(numbers) == MOST_DEPARTED + 50, "the number of a loss is never given again"
    assert set(states.now(S)) == {"front", f"new{n}"}
    states.follow([f"new{n - 1}", "new0"], [f"new{n - 1}", "new0"], n * S)
    assert {name: camera.losses for name, camera in states.now(S).items()} == {f"new{n - 1}": 1, "new0": 0}


def test_of_an_unknown_camera_nothing_is_heard() -> None:
    states = keeper()
    assert states.reported("nobody", "lost", "", S) is None
    assert states.died("nobody", "", S) is None
    assert set(states.now(S)) == {"front", "yard", "file"}


Happening = CameraState | Literal["died", "replaced", "ended"]


@given(
    st.lists(st.tuples(st.sampled_from([*ALL_STATES, "died", "replaced", "ended"]), st.integers(-2, 9)), max_size=60)
)
def test_each_loss_has_one_end_and_no_time_is_negative(steps: list[tuple[Happening, int]]) -> None:
    states, now, phases = keeper(), 0, list[tuple[int, bool]]()
    for what, later in steps:
        now += later * S  # a child's times may go backwards
        for change in _after(states, what, now):
            if isinstance(change, Change):
                assert change.for_s >= 0
                assert change.state != change.was
            if change.loss:
                assert (change.lost_s or 0) >= 0
                phases.append((change.loss, change.lost_s is not None))
    states.stop()
    phases += [(over.loss, True) for over in states.end_losses(now)]
    assert phases == [(1 + n // 2, n % 2 == 1) for n in range(len(phases))]
    assert len(phases) % 2 == 0


def _after(states: CameraStates, what: Happening, now: int) -> list[Change | LossOver]:
    """What is told when this happens to the camera."""
    if what == "replaced":
        over = states.follow(["yard"], LIVE_CAMERAS, now, wanted=LIVE_CAMERAS)
        return [*over, *states.follow(LIVE_CAMERAS, LIVE_CAMERAS, now)]
    if what == "ended":
        reported = states.ended("front", "end", now)
        return [reported.loss] if reported and reported.loss else []
    change = states.died("front", "", now) if what == "died" else states.reported("front", what, "", now)
    return [change] if change else []
