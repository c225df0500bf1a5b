"""MoveNet MultiPose from its published TF.js form to ONNX, with numpy and onnx alone: TensorFlow is not needed.

    tfjs.py       topology and weights as TF.js keeps them          JSON + bytes -> Graph
    convert.py    any such graph, cut at named nodes                Graph -> ModelProto
    multipose.py  the nodes, names and metadata of MultiPose        JSON + bytes -> the bytes of the .onnx file

Start with `convert.py`.
"""
