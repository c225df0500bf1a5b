"""`camgraph model profile`: the time of a model, node by node.

Start with `command.py`. The times are ONNX Runtime's own; nothing here measures.
"""
