"""The model of the run, asked about pictures that a client sends.

Start with `infer_calls.py`. `model_link` leads a picture through the stages before and behind the model, and
`spare_time` bounds the time of that while cameras need the model. No second copy of a model is loaded.
"""
