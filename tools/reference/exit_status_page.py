"""Exit statuses, and the errors that stand for them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from pipeline import errors
from tools.commands.health_check import EXIT_OF
from tools.reference.markdown import code, sentence, table

_MEANINGS = {
    errors.EXIT_DONE: "All is done. A run has processed its cameras to their end, or was stopped and drained.",
    errors.EXIT_GAVE_UP: "Something was given up, and the last lines name it: a camera that failed, frames that were "
    "dropped although the graph does not allow it, a stage that lost its memory.",
    errors.EXIT_USER: "Your mistake: the command line, the graph, the rules, or a file that the graph names.",
    errors.EXIT_ENVIRONMENT: "The machine lacks something, or did not take something for 30 seconds: memory, a "
    "library, a disk, a receiver. Events that were not delivered are kept for the next run of that name.",
    errors.EXIT_SIGINT: "You pressed Ctrl-C, and the run was drained. A second Ctrl-C ends it at once.",
}
_HEALTH = {
    "healthy": "Frames of every camera went through lately, and nothing is in trouble.",
    "degraded": "A camera brings no frames, a stage or process is in trouble, or the run is starting or stopping.",
    "down": "No camera has frames that go through, or the run does not answer.",
    "unknown": "There is no such run, there are several and `--name` is missing, or the run cannot be asked.",
}


def exit_status_page() -> Iterator[str]:
    yield "# Reference: exit statuses and errors"
    yield ""
    yield "The exit statuses of all commands. [How a run ends](../graph.md#how-a-run-ends) has the details of a run."
    yield ""
    yield from table(("status", "meaning"), ((code(str(status)), text) for status, text in _MEANINGS.items()))
    yield from ("", "## camgraph status --check", "")
    yield "This command speaks the language of monitors (Nagios plugins) instead:"
    yield ""
    yield from table(
        ("status", "word", "meaning"), ((code(str(n)), code(word), _HEALTH[word]) for word, n in EXIT_OF.items())
    )
    yield from ("", "## Errors", "")
    yield "Messages of errors are made for you to act on. If you write a stage or use camgraph from Python, these are"
    yield "the classes of `pipeline.errors`:"
    yield ""
    yield from table(("class", "is a", "exit status", "meaning"), _classes(errors.CamgraphError))


def _classes(top: type[errors.CamgraphError]) -> Iterator[tuple[str, str, str, str]]:
    about = (inspect.getdoc(top) or "").partition("\n\n")[0]
    yield code(top.__name__), code(top.__bases__[0].__name__), code(str(top.exit_status)), sentence(about)
    for below in top.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from _classes(below)
