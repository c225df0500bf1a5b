"""The library of actions over real clips with ground truth: found, missed and false, and which layer missed a fall.

Real clips have a file `truth.yaml` beside them. Whom the model finds in a clip is kept, so a rule is tried quickly.
"""
