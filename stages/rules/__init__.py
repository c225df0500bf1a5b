"""The stage `rules`, and the files of rules: their keys, their checks, and the rules made of them.

    rules                                  the stage: people in, events out
    rule_set, rule_file, templates, ...    a file of rules -> rules ready to be judged
    library                                the actions that camgraph brings (`actions.yaml`)
    conditions                             for authors of conditions in Python
    language                               conditions and their judging: pure, without a file or a clock

Start with `rule_file.py` (the keys) and `rule_set.py`. No rule is judged outside of `language`.
"""
