"""`camgraph model prepare`, `fp16`, `quantize`, `export`: models made of models.

Start with `prepare_command.py`. The model that is read is never changed: each command writes a new file.
"""
