"""Engines that run models: ONNX Runtime, OpenVINO, a server that speaks KServe. One module per provider, one interface.

Start with `engine.py`, the interface. An engine never chooses itself, and knows no camera: it gets tensors, and
gives tensors.
"""
