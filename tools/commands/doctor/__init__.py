"""`camgraph doctor`: checks the machine, and says for each part whether it is well and how to mend it."""
