"""The model of the run, asked about pictures that a client sends.

Start with `infer_calls.py`, which bounds the time of calls while cameras need the model. `model_link` leads a picture
through the stages before and behind the model. No second copy of a model is loaded.
"""
