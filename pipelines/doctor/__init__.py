"""`grouplake doctor`: checks of everything that a job needs, before it runs or after it failed.

A check is a function from the options to findings; `checks.CHECKS` is the table of all checks. A subject has a module of its own.
"""
