"""MoveNet MultiPose from its published TF.js form to ONNX, with numpy and onnx alone.

tfjs.py       topology and weights as TF.js keeps them       JSON + bytes -> Graph
convert.py    any such graph, cut at named nodes             Graph -> ModelProto
multipose.py  which nodes, names and metadata MultiPose has  JSON + bytes -> the bytes of the .onnx file
"""
