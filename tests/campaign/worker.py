"""One process of the campaign: makes calls with one wrong argument each, and names each beforehand."""

import json
import os
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp


def say(**fields: Any) -> None:
    """Tell the parent something, at once."""
    os.write(int(sys.argv[4]), (json.dumps(fields) + "\n").encode())


def judge(target: Any, slot: str, value: Any, arguments: dict[str, Any]) -> tuple[str, str]:
    """Make a call and return what came of it: refused, reported, passed, silent or broken, and why."""
    from pluriverse.warnings import PluriverseWarning
    from tests.campaign.target import REFUSALS

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome, why = "silent", ""
        try:
            target.call(**{**arguments, slot: value})
        except REFUSALS as error:
            outcome, why = (
                ("refused", "") if str(error) else ("broken", f"{type(error).__name__} without a message")
            )
            if isinstance(error, NotImplementedError | RecursionError):
                outcome, why = "broken", repr(error)
        except Exception as error:  # noqa: BLE001  (any other kind is a finding)
            outcome, why = "broken", "".join(traceback.format_exception_only(error)).strip()
        simulation = target.simulation
        if simulation is not None:
            if simulation._turn.is_interrupted:
                simulation.reset()
            try:
                simulation.step()
                frozen = simulation.report().frozen_worlds
            except Exception as error:  # noqa: BLE001
                return "broken", f"the simulation cannot be stepped any more: {error!r}"
            if frozen and outcome == "silent":
                outcome = "reported"
            if frozen:
                simulation.reset()
            if not np.isfinite(simulation.state.joint_q.numpy()).all():
                return "broken", "the state is not finite"
    if outcome == "silent" and any(issubclass(one.category, PluriverseWarning) for one in caught):
        outcome = "reported"
    if outcome == "silent" and slot in target.may_pass:
        outcome = "passed"
    return outcome, why


def main() -> None:
    """Make the calls of a range: `worker.py SEED FIRST END`."""
    seed, first, end = (int(text) for text in sys.argv[1:4])
    wp.config.quiet = True
    with tempfile.TemporaryDirectory() as folder:
        from tests.campaign.targets import make_targets

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            targets = list(make_targets(Path(folder)))
        for target in targets:  # compiled before the clock of a call runs
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                target.call(**{name: make() for name, make in target.sound.items()})
                if target.simulation is not None:
                    target.simulation.reset()
        say(ready=len(targets), slots=sum(len(target.slots) for target in targets))
        places = [(target, slot) for target in targets for slot in target.slots]
        for number in range(first, end):
            rng = np.random.default_rng([seed, number])
            target, slot = places[number % len(places)]
            value = target.slots[slot](rng)
            arguments = {name: make() for name, make in target.sound.items() if name != slot}
            say(number=number, call=target.name, slot=slot, value=f"{value!r:.200}")
            outcome, why = judge(target, slot, value, arguments)
            say(number=number, outcome=outcome, why=why[:500])
    say(done=True)
    sys.stdout.flush()
    os._exit(0)  # threads of simulations need no farewell


if __name__ == "__main__":
    main()
