"""`camgraph farm`, and how its processes end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from camgraph_test_stages.waiting import until
from click.testing import CliRunner

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.tools.cli import main
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator

pytestmark = pytest.mark.timeout(60)

SMALL = ["--size", "320x180", "--seconds", "1", "--port", "0"]


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "camgraph.tools.cli", "farm", *SMALL, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_addresses_are_printed_and_served_until_interrupted(view: Callable[..., object]) -> None:
    process = start("--cameras", "2", "--auth", "digest", "--fault", "cam2=clock:60@0")
    try:
        assert process.stdout is not None
        urls = [process.stdout.readline().strip() for _ in range(2)]
        assert [url.rpartition("/")[2] for url in urls] == ["cam1", "cam2"]
        assert all(len(view(url).pictures(3)) == 3 for url in urls)  # type: ignore[attr-defined]
        process.send_signal(signal.SIGINT)
        _, output = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "clock:60 begins (cam2)" in output


def ended(pid: int) -> bool:
    """Whether a process is gone, or a zombie that nobody waits for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_the_cameras_end_with_the_process_that_wanted_them() -> None:
    process = start()
    try:
        assert process.stdout is not None
        process.stdout.readline()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 2, "the cameras, and who writes to the standard error"
    finally:
        process.kill()
        process.communicate(timeout=60)
    until(lambda: all(ended(int(child)) for child in children))


def test_a_farm_whose_process_was_killed_says_so() -> None:
    with RtspSimulator([CameraSettings(name="a", clip=ClipSettings(width=320, seconds=1))]) as simulator:
        os.kill(simulator.pid, signal.SIGKILL)
        with pytest.raises(EnvironmentProblem, match="farm: "):
            simulator.camera("a").counts()
        assert simulator.wait() == -signal.SIGKILL


def test_nothing_is_left_of_a_closed_farm() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    simulator = RtspSimulator([CameraSettings(name="a", clip=ClipSettings(width=320, seconds=1))])
    with simulator:
        pid = simulator.pid
    assert not Path(f"/proc/{pid}").exists()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.mp4"], "nowhere.mp4: expected a video, got no such file"),
        (["--size", "big"], "--size big: expected WIDTHxHEIGHT, such as 1280x720"),
        (["--size", "321x180"], "camgraph farm: width: must be a multiple of 2, got 321"),
        (["--fps", "0"], "camgraph farm: fps: must be greater than 0, got 0.0"),
        (["--fault", "nap@3"], "there is no fault `nap`"),
        (["--fault", "cam9=stall@3"], "farm: there is no camera `cam9`; there are cam1"),
    ],
)
def test_mistakes_are_the_users(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["farm", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr


def test_help_lists_the_faults() -> None:
    result = CliRunner().invoke(main, ["farm", "--help"])
    assert "answer:401|404|503" in result.stdout
