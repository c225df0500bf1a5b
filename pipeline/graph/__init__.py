"""Graph files: from text to the plan of a run, with every mistake found at once.

text --load--> Source (values with places) --read--> definition --> nodes + arrows --check-->
  complete (outbox, policies, depths) --> place (groups of stages, shards of cameras) --> RunPlan

load       yaml_source, yaml_reader; graph_source (again, for `reload`)
variables  variables, env_file, secret_files
read       definition, reading, nodes, arrows, informing
check      structure, remarks; mistakes in words: report, explain
complete   completion, depths
place      placement, shared_memory, planning
show       drawing, schema, schema_walk

Start with `loading.py`, which takes these steps. Nothing here starts a process, opens a camera or runs a model.
"""

from camgraph.pipeline.graph.loading import default_name, load_graph, load_plan, parse_graph
from camgraph.pipeline.graph.planning import Graph, plan_of

__all__ = ["Graph", "default_name", "load_graph", "load_plan", "parse_graph", "plan_of"]
