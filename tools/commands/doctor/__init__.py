"""What `camgraph doctor` does: looks at the machine, and says for each thing whether it is well and how to mend it."""
