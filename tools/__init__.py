"""The command line, and the tools around it. Each row imports only from rows below it:

    cli                        the command `camgraph`
    benchmarks | proofs        how fast, and what is broken on purpose: from a checkout only
    commands                   what `camgraph ...` does, a file each
    display | assets           what people see in a terminal; models and clips that are pulled
    models                     `camgraph model`
    measuring                  what benchmarks and proofs share
    animator | simulator       people made of numbers; RTSP cameras with faults at will (`camgraph farm`)

Start with `cli.py`, then the command that you want to change.
"""

import pipeline  # noqa: F401 - turns telemetry off before a module of this package loads a library
