"""What runs a model: ONNX Runtime, OpenVINO, a server that speaks KServe. One module a provider, one interface.

Start with `engine.py`, which says what an engine must be able to do.
"""
