"""Trains the network behind `looks_like` on animated people, from nothing, on a CPU. Not installed.

plays.py    what one person does, and in which poses
truths.py   which classes that shows, moment by moment
views.py    the person before a camera, with the noise of pose models
windows.py  the windows that the network reads, with their truths
crowds.py   windows of many people, who only walk and stand
network.py  the network, its training and its ONNX file

Start with `plays.py`.
"""
