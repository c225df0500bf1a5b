"""A page in headless Chromium that has the modules of the service's page, and no service."""

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

import tools.service

FOLDER = Path(tools.service.__file__).parent / "page"


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it so
        """Tests that pass say nothing."""


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    """A page whose global `page` has all that the modules export."""
    if browser.program() is None:
        pytest.skip("Chromium is not installed")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=str(FOLDER)))
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    serving.start()
    try:
        with browsing() as found:
            found.open(f"http://127.0.0.1:{server.server_port}/page.css")
            names = [path.stem for path in FOLDER.glob("*.js") if path.stem != "page"]
            loads = ", ".join(f"import('/{name}.js')" for name in names)
            found.run(f"Promise.all([{loads}]).then((all) => {{ window.page = Object.assign({{}}, ...all); }})")
            found.run("window.fetch = () => new Promise(() => {})")  # stills ask for pictures, and there are none
            yield found
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
