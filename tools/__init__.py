"""The command line, and the tools around it."""
