"""Every kind of mistake, by its id."""

from __future__ import annotations

from collections.abc import Iterator

from tools.commands.explaining.kinds import topics


def error_page() -> Iterator[str]:
    yield "# Reference: error ids"
    yield ""
    yield "On a terminal, the last line of an error names its kind: `more: camgraph explain shared-memory`. Messages"
    yield "may become clearer from version to version; ids stay. Logs in JSON (`--json-logs`) have them as `error_id`,"
    yield "errors of the service's API as `id`, and in Python they are the `error_id` of an exception. If it is about"
    yield "several mistakes in a file, `error_ids` names the kinds of all."
    for topic, members in topics().items():
        yield from ("", f"## {topic}")
        for kind in members:
            yield from ("", f"### {kind.id}", "", kind.about, "", kind.why, "")
            yield from (f"- {one}" for one in kind.do)
