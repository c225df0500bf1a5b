"""The meaning of the ids of errors: `camgraph explain`.

Start with `kinds.py`. `kinds.yaml` has a text for each id; the code that raises an error names only the id.
"""
