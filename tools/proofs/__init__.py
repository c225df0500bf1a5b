"""Proofs: they break things on purpose, to see whether the guarantees hold. Not in the wheel: run these from a
checkout.

`make prove` runs them all. Each is a command, `python -m tools.proofs.NAME --help`, and writes its page in docs/.
"""
