"""Plays clips in headless Chromium: `python -m camgraph.tools.lab.proofs.clip_playback CLIP... --screenshot shown.png`.

A page on loopback plays the clips beside each other, muted, and reports how far it came. The screenshot is taken when
all of them were played to their ends. Debian's package `chromium` has H.264; H.265 depends on the machine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click

_WITHIN_S = 60.0
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_PAGE = """<!doctype html><title>clips</title>
<style>body{margin:8px;font:14px sans-serif} figure{display:inline-block;margin:4px} video{width:380px}</style>
<body><script>
const clips = CLIPS, played = {};
let open = clips.length;
const report = () => fetch("/played", {method: "POST", body: JSON.stringify(played)});
const over = (name, video, error) => {
  if (played[name]) return;
  const quality = video.getVideoPlaybackQuality();
  played[name] = {error, seconds: video.currentTime, duration: video.duration, width: video.videoWidth,
                  frames: quality.totalVideoFrames, dropped: quality.droppedVideoFrames};
  caption[name].textContent = `${name}: ${error || "played " + video.currentTime.toFixed(2) + " s"}`;
  if (--open === 0) report();
};
const caption = {};
clips.forEach((name, number) => {
  const figure = document.createElement("figure"), video = document.createElement("video");
  caption[name] = document.createElement("figcaption");
  video.muted = true; video.src = "/clip/" + number; video.playbackRate = 2;
  video.onended = () => over(name, video, "");
  video.onerror = () => over(name, video, video.error.message || "error " + video.error.code);
  figure.append(video, caption[name]); document.body.append(figure);
  video.play().catch(error => over(name, video, String(error)));
});
</script><img src="/when-played" width=1 height=1 alt="">"""
"""The page counts as loaded when the picture at its end comes: then Chromium takes the screenshot."""


@dataclass(frozen=True, slots=True)
class Played:
    """How far a browser came with one clip. `error`: "" if it reached the end."""

    name: str
    error: str
    seconds: float = 0.0
    duration: float = 0.0
    width: int = 0
    frames: int = 0
    dropped: int = 0


@dataclass(slots=True)
class _Showing:
    clips: Sequence[Path]
    played: Mapping[str, Any] = field(default_factory=dict)
    is_over: threading.Event = field(default_factory=threading.Event)


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, showing: _Showing, *args: Any) -> None:
        self._showing = showing
        super().__init__(*args)

    def do_GET(self) -> None:
        if self.path == "/":
            names = json.dumps([path.name for path in self._showing.clips])
            self._send(_PAGE.replace("CLIPS", names).encode(), "text/html; charset=utf-8")
        elif self.path.startswith("/clip/"):
            self._send(self._showing.clips[int(self.path.rpartition("/")[2])].read_bytes(), "video/mp4")
        elif self.path == "/when-played":
            self._showing.is_over.wait(_WITHIN_S)
            self._send(b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml")
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        self._showing.played = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._send(b"", "text/plain")
        self._showing.is_over.set()

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing: the page says what matters."""


def browser() -> str | None:
    """The path of Chromium, if it is installed."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def play(clips: Sequence[Path], screenshot: Path) -> list[Played]:
    """Play them all to their ends. Raises LookupError without Chromium."""
    program = browser()
    if program is None:
        raise LookupError("Chromium is not installed: on Debian, apt-get install chromium")
    showing = _Showing(clips)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, showing))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory(prefix="cgchromium", ignore_cleanup_errors=True) as home:
            _show(program, f"http://127.0.0.1:{server.server_port}/", Path(home), screenshot)
    finally:
        showing.is_over.set()
        server.shutdown()
        server.server_close()
    return [_result(path.name, showing.played) for path in clips]


def _show(program: str, url: str, home: Path, screenshot: Path) -> None:
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
    options += ["--autoplay-policy=no-user-gesture-required", "--window-size=1200,700", f"--user-data-dir={home}"]
    options += [f"--screenshot={screenshot.resolve()}", "--timeout=60000", "--no-proxy-server"]
    subprocess.run(  # noqa: S603 - the browser, on our own page
        [program, *options, url],
        check=True,
        timeout=2 * _WITHIN_S,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _result(name: str, played: Mapping[str, Any]) -> Played:
    values = played.get(name)
    return Played(name, **values) if values else Played(name, "it was not played to its end")


@click.command()
@click.argument("clips", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--screenshot", default="shown.png", show_default=True, type=click.Path(path_type=Path))
def main(clips: tuple[Path, ...], screenshot: Path) -> None:
    """Play CLIPs in headless Chromium. Status 1 if one of them does not play to its end."""
    try:
        found = play(clips, screenshot)
    except LookupError as error:
        raise click.ClickException(str(error)) from None
    for one in found:
        shown = f"{one.seconds:.2f} of {one.duration:.2f} s, {one.frames} pictures, {one.width} wide"
        click.echo(f"{one.name}: {one.error or shown}")
    if any(one.error for one in found):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
