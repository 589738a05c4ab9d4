"""MuJoCo's C engine, called from kernels; other rooms see only its interface `engine.Engine`.

It relies on the following beyond MuJoCo's documented interface:

- Functions are called by their addresses in MuJoCo's library (`library.function_addresses`), with the types
  of their declarations in `mujoco.h`.
- NumPy gives the addresses of arrays. The offsets of plain numbers in structs are found by writing a marker
through the Python package and locating it in memory (`library.find_layout`).
- `_mjPRIVATE_setTlsLogHandler`, which the Python package uses to turn errors into exceptions, gets our
handler during a call; the handler leaves by a jump (`native_call.call_guarded`). Without the function, errors
end the
  process.
- `mjcb_time` is null while a solver exists, so that timers cost nothing (`clock`). Without that variable
timers run.

`library.find_misfit` checks all of that, and compares a step by address with one through the Python package.
If a check fails, `engine_choice.make_engine` warns and uses `plain_engine.PlainEngine`, which relies on the
public interface only.
"""
