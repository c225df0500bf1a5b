"""Headless Chromium, told what to do over its DevTools protocol: for tests of the page."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

from camgraph_test_stages.waiting import until

WITHIN_S = 90.0
_END_S = 30.0
_PHONE = 600
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def program() -> str | None:
    """The path of Chromium, if it is installed."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


class Browser:
    """One page of Chromium. `asked`: the addresses of all its requests; `errors`: what its console complained about."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._number = 0
        self.asked: list[str] = []
        self.errors: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **values: Any) -> dict[str, Any]:
        """Ask the browser to do something, and return its answer."""
        self._number += 1
        self._connection.send(json.dumps({"id": self._number, "method": method, "params": values}))
        end = time.monotonic() + WITHIN_S
        while True:
            message = json.loads(self._connection.recv(timeout=max(0.1, end - time.monotonic())))
            if message.get("id") == self._number:
                assert "error" not in message, (method, message)
                return dict(message["result"])
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        values = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.asked.append(values["request"]["url"])
            case "Runtime.exceptionThrown":
                self.errors.append(str(values["exceptionDetails"]))
            case "Log.entryAdded" if values["entry"]["level"] == "error":
                self.errors.append(f"{values['entry']['text']} {values['entry'].get('url', '')}")
            case "Page.javascriptDialogOpening":
                self.errors.append(f"a dialogue: {values['message']}")

    def open(self, url: str) -> None:
        self.send("Page.navigate", url=url)
        until(lambda: self.run("document.readyState === 'complete'"), WITHIN_S, every_s=0.05)

    def run(self, script: str) -> Any:
        """The value of an expression in the page; promises are waited for."""
        more = {"awaitPromise": True, "returnByValue": True, "userGesture": True}
        answer = self.send("Runtime.evaluate", expression=script, **more)
        assert "exceptionDetails" not in answer, (script, answer)
        return answer["result"].get("value")

    def until(self, script: str) -> Any:
        """Wait until the expression is true in the page, and return its value."""
        return until(lambda: self._now(script), WITHIN_S, lambda: (script, self.text(), self.errors), every_s=0.1)

    def _now(self, script: str) -> Any:
        """None while the page is left for another one."""
        try:
            return self.run(script)
        except AssertionError as error:
            if "navigated" not in str(error):
                raise
            return None

    def text(self) -> str:
        """What the page shows."""
        return str(self.run("document.body.innerText"))

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key)

    def picture(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """A screenshot (PNG) at this size."""
        look = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=look)
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.run("new Promise((done) => setTimeout(done, 400))")
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser with nothing in it yet. Raises LookupError if Chromium is not installed."""
    found = program()
    if found is None:
        raise LookupError("Chromium is not installed: on Debian, apt-get install chromium")
    with tempfile.TemporaryDirectory(prefix="cgbrowser", ignore_cleanup_errors=True) as home:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        options += ["--remote-debugging-port=0", f"--user-data-dir={home}", "--disable-background-networking"]
        process = subprocess.Popen(
            [found, *options, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            port_file = Path(home) / "DevToolsActivePort"
            until(lambda: port_file.exists() and port_file.read_text().count("\n"), WITHIN_S, every_s=0.05)
            pages = httpx.get(f"http://127.0.0.1:{port_file.read_text().split()[0]}/json", timeout=WITHIN_S).json()
            address = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
            # Nobody reads while a test starts its run: messages of that time must not fill a queue behind which the
            # answers to pings wait, for the connection would count as dead.
            with connect(
                address, max_size=None, max_queue=None, ping_interval=None, open_timeout=WITHIN_S
            ) as connection:
                yield Browser(connection)
        finally:
            process.terminate()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
