"""The library of actions over real clips with ground truth: found, missed and false, and which layer missed a fall.

Real clips have a file `truth.yaml` beside them. The people that the model finds in a clip are kept, so a rule is tried
quickly. Start with `__main__.py`. Only clips in `truth.yaml` are watched.
"""
