"""Model files, without running them: their paths, their safety, the amount of their calculations.

Start with `model_safety.py`. `pixel_folding.py` changes a model into another one. Nothing here loads an engine.
"""
