"""The stages, one file each: a thin shell of I/O over the pure functions in `vision/`. Stages never import each other.

Start with `decode.py` and its test, `tests/stages/test_decode.py`. `messages.py` has the types that stages exchange,
`events.py` the form of events, and `docs/write_a_stage.md` the contract of a stage. Parts that a stage is made of,
or that several stages share, have packages of their own:

    vision              arrays in, arrays out: geometry, decoding, tracking, rules, drawing
    reading             files, pictures and cameras, for `capture`
    inference           running models, for `infer` and the stages behind it
    rulebook            files of rules, for `rules`
    footage             pictures and clips of incidents, for `capture` and `sink_footage`
    delivery, sockets   sinks that deliver to others
    writing             sinks that write files
    handover            sinks that lead to a program of the user

A stage knows messages, its settings and its context only: no process, no queue, and not the graph around it.
"""

import camgraph.pipeline  # noqa: F401 - turns telemetry off before a module of this package loads a library

if __name__ == "stages":  # beside the package, in a checkout: a second copy of each class would come of that
    raise ModuleNotFoundError("this package is `camgraph.stages`", name=__name__)
