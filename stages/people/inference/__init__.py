"""The parts of the stage `infer` and of those behind a model. Each row imports only from rows below it:

    (modules of this folder)    what the stages share: batches, settings, outputs, decoding
    selection                   which engine runs a model here, and how
    engines                     ONNX Runtime, OpenVINO, KServe
    model                       model files, without running them

Start with `stages/people/infer.py`, then `readiness.py`. Only `engines` imports a library that runs models.
"""
