"""Turns a model's outputs into detections: a module for each family. `recognition` finds out the format of a model.

Start with `detections.py` (the result) and `formats.py` (all formats). Each module takes the outputs for one picture
and returns `Detections` in pixels of that picture. No model is opened or run here.
"""
