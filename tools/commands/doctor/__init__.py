"""`camgraph doctor`: checks each part of the machine, and names a remedy if one is wrong."""
