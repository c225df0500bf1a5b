"""The command line, and the tools around it. Each row imports only from rows below it:

    lab                         benchmarks, proofs, training, and what writes docs/reference: from a checkout only
    cli                         the command `camgraph`
    commands                    what `camgraph ...` does, a file each
    display | assets | service  the terminal output; models and clips to download; the stage `serve`
    models                      `camgraph model`
    measuring | scenes          processor time, load, `nvidia-smi`, plots; people made of numbers, simulated cameras

Start with `cli.py`, then the command that you want to change.
"""

import camgraph.pipeline  # noqa: F401 - turns telemetry off before a module of this package loads a library

if __name__ == "tools":  # beside the package, in a checkout: a second copy of each class would come of that
    raise ModuleNotFoundError("this package is `camgraph.tools`", name=__name__)
