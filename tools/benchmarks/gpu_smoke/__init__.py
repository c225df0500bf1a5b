"""The first minutes on a machine with an NVIDIA GPU: tries each use of the GPU, the most important first.

    python -m tools.benchmarks.gpu_smoke --help

| module | what it has |
|---|---|
| `__main__` | the command: starts each step in a process of its own, with a time limit, and writes the results |
| `steps` | the list of all steps in their order, and the process that runs one of them |
| `task` | what a step is given and what it raises when it fails |
| `machine` | steps: the driver, CUDA's libraries, the doctor, the memory left at the end |
| `placement` | steps: which nodes of a model the GPU takes |
| `same_people` | steps: the same people on the GPU as on the CPU |
| `speed` | steps: how fast a model runs |
| `memory` | steps: batches too large for the GPU's memory |
| `files` | steps: the graph runs over files |
| `cameras` | steps: the graph runs on live cameras |
| `peers` | the step that compares camgraph with others |
| `open_model`, `graph_run` | what these steps share: a model opened and timed; the graph and its runs |
"""
