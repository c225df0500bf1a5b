"""Turns a model's outputs into detections: one module for each format. `recognition` finds out which format a model
has.

Each takes the outputs for one picture and returns `Detections` in pixels of that picture.
"""
