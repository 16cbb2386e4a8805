"""Rules that judge the evidence of a build; `judge.py` has all of them in their order. Pure."""
