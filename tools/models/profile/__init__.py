"""`camgraph model profile`: where a model's time goes, node by node. Start with `command.py`."""
