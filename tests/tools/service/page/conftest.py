"""The page in headless Chromium without a service: its modules alone, or all of it over answers that the tests make."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages import browser
from camgraph_test_stages.browser import Browser, browsing

import camgraph.tools.service

FOLDER = Path(camgraph.tools.service.__file__).parent / "page"


class Files(SimpleHTTPRequestHandler):
    """The files of the page, at the root and, as the service has them, below /page."""

    def translate_path(self, path: str) -> str:
        return super().translate_path(path.replace("/page/", "/", 1))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it so
        """Tests that pass say nothing."""


@pytest.fixture(scope="module")
def files() -> Iterator[str]:
    """The address of the page's files."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=str(FOLDER)))
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


@pytest.fixture(scope="module")
def chromium(files: str) -> Iterator[Browser]:
    """One browser for the tests of a file."""
    if browser.program() is None:
        pytest.skip("Chromium is not installed")
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def page(files: str, chromium: Browser) -> Browser:
    """A page whose global `page` has all that the modules export."""
    chromium.open(f"{files}/page.css")
    names = [path.stem for path in FOLDER.glob("*.js") if path.stem != "page"]
    loads = ", ".join(f"import('/{name}.js')" for name in names)
    chromium.run(f"Promise.all([{loads}]).then((all) => {{ window.page = Object.assign({{}}, ...all); }})")
    chromium.run("window.fetch = () => new Promise(() => {})")  # stills ask for pictures, and there are none
    return chromium
