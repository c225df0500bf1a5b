"""Benchmarks: how fast camgraph is, beside its limits and beside others. Not in the wheel: run these from a checkout.

Start with `plan.py`. Each is a command, `python -m camgraph.tools.lab.benchmarks.NAME --help`, and writes its figures
into docs/. Nothing here is imported by the product.
"""
