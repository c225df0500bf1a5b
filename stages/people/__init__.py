"""From pictures to people and things with labels: the stages from `preprocess` to `track`, and those that say more.

    preprocess, infer                           a frame -> what the model takes -> what it gives
    decode, decode_*                            what the model gives -> people
    track                                       who is who, from frame to frame
    crop, classify, add_*, keypoint_windows     more about somebody who was found
    combine_people                              two models, one list of people
    inference/                                  running models, for `infer` and the stages behind it

Start with `decode.py` and its test, `tests/stages/people/test_decode.py`. No stage here knows a camera or a rule.
"""
