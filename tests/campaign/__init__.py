"""A campaign of generated wrong arguments against the public API, in processes of its own.

`python -m tests.campaign --calls 5000` is the long form; the tests run a short one.
"""
