"""What the ids of errors mean: `camgraph explain`.

`kinds.yaml` has a text for each id; the code that raises an error names only the id. Begin with `kinds`.
"""
