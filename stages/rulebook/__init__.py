"""Files of rules: their keys, their checks, and the rules made of them. For the stage `rules`, and for sinks that draw.

Start with `rule_file.py` (the keys) and `rule_set.py` (rules ready to be judged). The judging itself is not here: it
is pure, in `stages/vision/rules`.
"""
