"""What `camgraph model` does: looks into models, and makes others of them.

Start with `command.py`. A folder for each command with much to it (bench/, compare/, convert/, inspect/, profile/);
what they share lies here: `chain.py` runs frames through a model, `statement.py` is what the user says of one.
"""
