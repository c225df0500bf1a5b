"""How cost grows with cameras, people and rules, and the cost of one hop between two processes.

`python -m camgraph.tools.lab.benchmarks.cost_curves --report docs/benchmarks.md` (`tests/plugin` must be installed: its
stages stand in for a model, and bring numbers instead of pictures).

Start with `__main__.py`. `page.py` measures nothing.
"""
