"""The lab: it measures the product, tries to break it, and writes what came out into docs/. Not in the wheel.

`benchmarks` measure, `proofs` break things on purpose, `training` makes the network behind `looks_like` anew, and
`reference` writes docs/reference. The modules beside them are what they share. Nothing here is imported by the product.
Start with `figure.py`, the frame of all figures and proofs.
"""
