"""How well the tracker keeps identities, beside other packages' trackers, on the same detections.

    python -m camgraph.tools.lab.benchmarks.track_accuracy --data FOLDER [--report docs/tracking.md]

Start with `__main__.py`. `street` and `scenes` make sequences, `measures` judges, `peers` runs the others. `long` does
the same over minutes (`long_scenes`), with settings that were chosen beforehand, and counts `mistakes` by kind.

Nothing here is imported by the product.
"""
