"""The first minutes on a machine with an NVIDIA GPU: tries each use of the GPU, the most important first.

    python -m camgraph.tools.lab.benchmarks.gpu_smoke --help

| module | contents |
|---|---|
| `__main__` | the command: starts each step in a process of its own, with a time limit, and writes the results |
| `steps` | the list of all steps in their order, and the process that runs one of them |
| `task` | the arguments of a step, and the error that it raises if it fails |
| `machine` | steps: the driver, CUDA's libraries, the doctor, the memory left at the end |
| `placement` | steps: the nodes of a model that the GPU takes |
| `same_people` | steps: the same people on the GPU as on the CPU |
| `speed` | steps: how fast a model runs, also beside others |
| `memory` | steps: batches too large for the GPU's memory |
| `cameras` | steps: the graph runs on live cameras |
| `graph_run` | steps: the graph runs over files; shared: that graph and its runs |
| `open_model` | shared by these steps: a model opened and timed |

Start with `steps.py`. No step depends on another one: each has a process of its own.
"""
