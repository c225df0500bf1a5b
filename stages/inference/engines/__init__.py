"""Engines that run models: ONNX Runtime, OpenVINO, a server that speaks KServe. One module per provider, one interface.

Start with `engine.py`, the interface of an engine.
"""
