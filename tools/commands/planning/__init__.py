"""`camgraph plan`: a short trial of the user's own graph, and what follows for more cameras."""
