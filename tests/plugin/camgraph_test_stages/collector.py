"""A collector of traces on loopback."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """Takes OTLP over HTTP, as any collector does. If it refuses, it repeats what it was told."""

    def __init__(self, status: int = 200) -> None:
        self.spans: list[Any] = []
        self.headers: list[Any] = []
        self.status = status
        """Of its answers; 0: it never answers."""
        self.asked, self.over = threading.Event(), threading.Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector.asked.set()
                if not collector.status:
                    collector.over.wait()
                    return
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(self.path, self.headers, body)
                told = b"" if collector.status == 200 else f"refused: {self.headers}".encode()
                self.send_response(collector.status)
                self.send_header("Content-Length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, path: str, headers: Any, body: bytes) -> None:
        assert path == "/v1/traces"
        self.headers.append(headers)
        if self.status == 200:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]

    def traces(self) -> dict[str, dict[str, Any]]:
        """Trace -> name -> span."""
        found: dict[str, dict[str, Any]] = {}
        for span in self.spans:
            found.setdefault(span.trace_id.hex(), {})[span.name] = span
        return found

    def end(self) -> None:
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
