"""The commands of `camgraph model`: they inspect models, and make others of them.

Start with `command.py`. Each large command has a folder (bench/, compare/, convert/, inspect/, profile/). Shared
code lies here: `chain.py` runs frames through a model, `declaration.py` holds the user's declarations about one.
Nothing here is imported by a stage.
"""
