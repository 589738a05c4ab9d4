"""MuJoCo's C engine, called from kernels, behind `engine.Engine`, which is all that others see of it.

What is borrowed beyond MuJoCo's documented interface, and what happens where a version has it otherwise:

- Functions are called by their addresses in MuJoCo's library (`library.function_addresses`), with the types
  of their declarations in `mujoco.h`.
- Arrays tell their addresses through NumPy. The places of plain numbers in structs are found by writing a
  mark through the Python package and looking where it arrives (`library.find_layout`).
- `_mjPRIVATE_setTlsLogHandler`, by which the Python package makes exceptions of errors, takes our handler for
  the time of a call; it leaves by a jump (`native_call.call_guarded`). Without the function, errors end the
  process.
- `mjcb_time` is null while a solver exists, so that timers cost nothing (`clock`). Without the variable they
  run.

`library.find_misfit` looks for all of that, and compares a step by address with one of the Python package.
Where it finds a fault, `engine_choice.make_engine` warns and takes `plain_engine.PlainEngine`, which borrows
nothing.
"""
