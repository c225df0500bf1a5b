"""The accuracy of keypoints: measured on pictures with known ones, written to `docs/accuracy.md`.

    python -m camgraph.tools.lab.benchmarks.pose_accuracy --data FOLDER --report docs/accuracy.md

    conversion.py   our MultiPose against a reference, our decoder against the published one
    sizes.py        the largest size of people in the model's picture
    report.py       the part of the page and its drawn pictures

Start with `__main__.py`. Models and known people are not here: `tools/models/pose_estimators.py` makes people of a
picture, and `tools/models/pose_truth.py` has the pictures whose people are known, and OKS average precision.
"""
