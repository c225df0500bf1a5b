"""How right the keypoints are: measured on pictures with known ones, written to `docs/accuracy.md`.

python -m tools.benchmarks.pose_accuracy --data ../shared/data

estimators.py   a model and a size -> people in a picture
truth.py        pictures whose people are known; OKS average precision with pycocotools
conversion.py   our MultiPose against a reference, our decoder against the published one
sizes.py        how large people may be in the model's picture
report.py       the page and its drawn pictures
"""
