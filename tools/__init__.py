"""The command line, and the tools around it. Each row imports only from rows below it:

    reference                   writes docs/reference from the code: from a checkout only
    cli                         the command `camgraph`
    benchmarks | proofs         how fast, and what is broken on purpose: from a checkout only
    training                    the network behind `looks_like`: from a checkout only, beside these
    commands                    what `camgraph ...` does, a file each
    display | assets | service  the terminal output; models and clips to download; the stage `serve`
    models                      `camgraph model`
    measuring                   processor time, load, `nvidia-smi`, plots and report pages
    animator | simulator        people made of numbers; RTSP cameras with faults at will (`camgraph farm`)

Start with `cli.py`, then the command that you want to change.
"""

import pipeline  # noqa: F401 - turns telemetry off before a module of this package loads a library
