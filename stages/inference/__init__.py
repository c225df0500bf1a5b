"""ONNX Runtime: models, sessions and providers."""
