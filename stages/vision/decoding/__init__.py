"""What models say, turned into detections: one module for each way of saying it. Which one a model has, `recognition`
reads off the model.

Each takes the outputs for one picture and returns `Detections` in pixels of that picture.
"""
