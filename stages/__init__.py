"""One file per stage: a thin shell of I/O over the pure functions in `stages.vision`."""
