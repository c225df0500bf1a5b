"""Live cameras from Python: a slow reader gets the newest frames, and learns how many it missed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from camgraph_test_stages.waiting import until

import camgraph
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator

Graphs = Callable[..., Path]


def test_a_slow_reader_of_live_cameras_gets_the_newest(seeing: Graphs) -> None:
    settings = [
        CameraSettings(name=f"cam{n}", clip=ClipSettings(width=160, height=96, fps=20, seconds=4)) for n in (1, 2)
    ]
    with RtspSimulator(settings) as farm:
        cameras = ", ".join(f"{camera.name}: {{url: {camera.url!r}}}" for camera in farm.cameras)
        with camgraph.run(seeing(cameras)) as run:
            frames = run.frames(annotated=False)
            first = [next(frames)]
            while {frame.camera for frame in first} != {"cam1", "cam2"}:  # one may be connected before the other
                first.append(next(frames))
            seen = {name: camera.frames for name, camera in run.status().cameras.items()}
            until(lambda: all(camera.frames > seen[name] + 40 for name, camera in run.status().cameras.items()))
            fresh: dict[str, camgraph.Picture] = {}
            while len(fresh) < 2:  # two of one camera may come before the first of the other
                frame = next(frames)
                fresh.setdefault(frame.camera, frame)
            for camera, frame in fresh.items():
                before = max(old.seq for old in first if old.camera == camera)
                assert frame.seq > before + 20
                assert frame.skipped > 10
                assert frame.wall_time is not None
            following = [next(frames) for _ in range(10)]
            assert max(frame.skipped for frame in following[2:]) < 10
    assert run.result is not None
    assert run.result.status == 0


def test_the_loss_of_a_camera_is_an_event(seeing: Graphs) -> None:
    settings = [CameraSettings(name="cam1", clip=ClipSettings(width=160, height=96, fps=10, seconds=4))]
    with RtspSimulator(settings) as farm:
        with camgraph.run(seeing(f"cam1: {{url: {farm.cameras[0].url!r}}}")) as run:
            events = run.events()
            run.start()
            until(lambda: run.status().cameras["cam1"].state == "live")
            farm.close()
            lost = next(event for event in events if event.kind == "camera")
            assert (lost.action, lost.phase, lost.camera) == ("lost", "start", "cam1")
