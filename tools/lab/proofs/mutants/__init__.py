"""Mutants: faults of one line that each break a promise, and the tests that must fail with them.

Start with `mutant.py`, and `mutants.yaml` beside it, which has all of them. Run it before and after code is moved: a
promise whose test was lost on the way shows as a mutant that no test catches. Faults are put into a copy, never into
the checkout.
"""
