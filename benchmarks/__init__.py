"""Speed of Pluriverse against that of other engines: same robots, same time step, same machine, same run.

`python -m benchmarks --help` lists the options. Modules of engines import nothing but their engine, so
that each can live in an environment of its own.
"""
