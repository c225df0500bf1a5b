"""`camgraph model prepare`, `fp16`, `quantize`, `export`: models made of models. Start with `prepare_command.py`."""
