"""The stages, in four rooms, each of which may use those below it:

    sinks       where events, frames and tracks leave
    rules       what people do: files of rules, and their judging
    people      models, and who is who
    video       files and cameras

`vision` is below all of them: arrays in, arrays out. `messages.py` has the types that stages exchange, `events.py` the
form of events, `facts.py` what stages tell of themselves while a graph is planned, and docs/write_a_stage.md the
contract of a stage. Start with `people/decode.py` and its test, `tests/stages/people/test_decode.py`.

A stage is one file of its name. It knows messages, its settings and its context only: no process, no queue, not the
graph around it, and no other stage.
"""

import camgraph.pipeline  # noqa: F401 - turns telemetry off before a module of this package loads a library

if __name__ == "stages":  # beside the package, in a checkout: a second copy of each class would come of that
    raise ModuleNotFoundError("this package is `camgraph.stages`", name=__name__)
