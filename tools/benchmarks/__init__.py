"""How fast camgraph is, beside what limits it and beside others. Not in the wheel: run these from a checkout.

Each is a command, `python -m tools.benchmarks.NAME --help`, and writes its figures into docs/. Nothing here is imported
by the product.
"""
