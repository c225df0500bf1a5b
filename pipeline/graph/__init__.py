"""Graph files: from text to the plan of a run, with every mistake found at once.

text --load--> Source (values with places) --read--> definition --> nodes + arrows --check-->
  complete (outbox, policies, depths) --> place (groups of stages, shards of cameras) --> RunPlan
"""

from pipeline.graph.loading import default_name, load_graph, load_plan, parse_graph
from pipeline.graph.planning import Graph, plan_of

__all__ = ["Graph", "default_name", "load_graph", "load_plan", "parse_graph", "plan_of"]
