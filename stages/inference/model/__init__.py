"""Model files, without running them: their paths, whether they are safe to load, how much they calculate.

Start with `model_safety.py`. Also how a model is changed into another one (`pixel_folding.py`).
"""
