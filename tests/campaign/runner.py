"""Runs the campaign: starts workers, notices crashes and hangs, and goes on behind the call."""

import collections
import dataclasses
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A worker makes its models first, which may compile kernels [s]; a call takes a fraction of a second.
START_TIME_MAX = 1200.0
CALL_TIME_MAX = 60.0


@dataclasses.dataclass
class Campaign:
    """What came of the calls."""

    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    """Calls by outcome."""
    findings: list[str] = dataclasses.field(default_factory=list)
    """Calls that crashed, hung, broke or passed silently."""
    target_count: int = 0
    """Public calls."""
    slot_count: int = 0
    """Arguments that were replaced."""
    seconds: float = 0.0
    """Wall time, without the start of workers."""


def run_campaign(call_count: int, *, seed: int = 0, call_time: float = CALL_TIME_MAX) -> Campaign:
    """Make so many calls with one wrong argument each, in processes of their own."""
    campaign, first = Campaign(), 0
    while first < call_count:
        first = _run_worker(campaign, seed, first, call_count, call_time)
    return campaign


def _run_worker(campaign: Campaign, seed: int, first: int, end: int, call_time: float) -> int:
    """Run a worker until it ends in one way or another; return the number of the next call."""
    reading, writing = os.pipe()
    # The worker writes to a descriptor of its own, so that nothing that libraries print comes between.
    numbers = (str(number) for number in (seed, first, end, writing))
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.campaign.worker", *numbers],
        cwd=ROOT,
        pass_fds=[writing],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    current: dict[str, str] = {}
    number, waiting, begin, buffer, is_done = first, START_TIME_MAX, 0.0, b"", False
    while True:
        if not select.select([reading], [], [], waiting)[0]:
            process.kill()
            campaign.counts["hung"] += 1
            campaign.findings.append(f"hung: {current or 'start'}")
            break
        data = os.read(reading, 65536)
        if not data:
            break
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "ready" in message:
                campaign.target_count, campaign.slot_count = message["ready"], message["slots"]
                waiting, begin = call_time, time.perf_counter()
            elif "call" in message:
                current = message
            elif "outcome" in message:
                outcome = message["outcome"]
                campaign.counts[outcome] += 1
                if outcome in ("silent", "broken"):
                    campaign.findings.append(f"{outcome}: {current} {message['why']}")
                number, current = message["number"] + 1, {}
            else:
                is_done = True
    os.close(reading)
    _, errors = process.communicate()
    if begin:
        campaign.seconds += time.perf_counter() - begin
    if is_done:
        return end
    if process.returncode != -9:
        campaign.counts["crashed"] += 1
        told = errors.decode(errors="replace")[-600:]
        campaign.findings.append(f"crashed with {process.returncode}: {current or 'start'} {told}")
    if not begin:
        return end  # it cannot even start
    return number + 1
