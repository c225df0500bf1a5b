"""Proofs: they break things on purpose, to see whether the guarantees hold. Not in the wheel: run these from a
checkout.

Start with `live_kills.py`. Each is a command, `python -m camgraph.tools.lab.proofs.NAME --help`, and writes its page in
docs/. `make prove` runs them all. Nothing here is imported by the product.
"""
