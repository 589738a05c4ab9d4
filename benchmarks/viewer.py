"""What the viewer costs the simulation that it shows, and how long it takes to draw many robots.

`python -m benchmarks.viewer [--scene quadruped|FILE] [--worlds 256] [--shown 16 100 256]` steps a scene
without a viewer, with one that nobody looks at, and with one that a browser is connected to, in turns. The
browser is a process of its own that reads what is sent. Printed are medians. The rates of steps by wall time,
relative to those without a viewer, count waiting for the interpreter's lock as well, but need
idle cores to be believed. What the threads of the viewer take of a core is right on a busy machine too. Then
the pictures a second, the time of a core to prepare and to send one, and the bytes that are sent for it.
"""

import argparse
import asyncio
import contextlib
import multiprocessing
import statistics
import time
from typing import Any

import numpy as np
import warp as wp

import pluriverse as pv
from pluriverse.cli.robot_file import scene_of


def read_messages(url: str, version: str, ready: Any, received: Any) -> None:
    """Connect as a browser does, and count the bytes that come."""
    import msgspec
    import websockets

    camera = {
        "type": "ViewerCameraMessage",
        **{"wxyz": (1.0, 0.0, 0.0, 0.0), "position": (3.0, 3.0, 2.0), "look_at": (0.0, 0.0, 0.0)},
        **{"fov": 1.0, "near": 0.01, "far": 100.0, "image_height": 600, "image_width": 800},
        "up_direction": (0.0, 0.0, 1.0),
    }

    async def read() -> None:
        address = url.replace("http://", "ws://")
        async with websockets.connect(
            address, subprotocols=[f"viser-v{version}"], max_size=None, compression=None
        ) as socket:
            await socket.send(msgspec.msgpack.encode(camera))  # only then it counts as a client
            ready.set()
            async for message in socket:
                received.value += len(message)

    with contextlib.suppress(OSError, websockets.WebSocketException):  # the viewer was closed
        asyncio.run(read())


def rate(simulation: Any, count: int, seconds: float) -> float:
    """Return steps per second of wall time, over so many seconds."""
    begin, done = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        simulation.step(count)
        done += count
    return done / (time.perf_counter() - begin)


def measure(scene: Any, shown: int, arguments: argparse.Namespace) -> None:
    """Measure with so many robots shown, and print a line."""
    import viser

    context = multiprocessing.get_context("spawn")
    with scene.simulation(threads=arguments.threads) as simulation:
        simulation.step(100)
        worlds = np.unique(np.linspace(0, arguments.worlds - 1, min(shown, arguments.worlds)).astype(int))
        alone: list[float] = []
        unattended: list[float] = []
        attended: list[float] = []
        shares: list[float] = []
        pictures: list[float] = []
        bytes_sent = draws = sends = 0.0
        for _ in range(arguments.repeats):
            before = rate(simulation, arguments.call, arguments.seconds)
            with pv.view(simulation, worlds, verbose=False):
                unattended.append(rate(simulation, arguments.call, arguments.seconds))
            between = rate(simulation, arguments.call, arguments.seconds)
            with pv.view(simulation, worlds, verbose=False) as viewer:
                ready, received = context.Event(), context.Value("q", 0)
                browser = context.Process(
                    target=read_messages, args=(viewer.url, viser.__version__, ready, received), daemon=True
                )
                browser.start()
                if not ready.wait(60.0):
                    raise RuntimeError("the browser could not connect")
                time.sleep(1.0)
                first, frames = received.value, viewer.frame_count
                begin = time.perf_counter()
                attended.append(rate(simulation, arguments.call, arguments.seconds))
                frames = viewer.frame_count - frames
                pictures.append(frames / (time.perf_counter() - begin))
                bytes_sent = (received.value - first) / max(1, frames)
                draws, sends = viewer.draw_time, viewer.send_time
                shares.append(pictures[-1] * (draws + sends))
                browser.terminate()
                browser.join()
            after = rate(simulation, arguments.call, arguments.seconds)
            unattended[-1] /= 0.5 * (before + between)
            attended[-1] /= 0.5 * (between + after)
            alone.append(between)
        shapes = 0
        with pv.view(simulation, worlds, verbose=False) as viewer:
            shapes, batches = viewer.stage.view.instance_count, viewer.stage.view.batch_count
    print(
        f"{len(worlds)} of {arguments.worlds} worlds, {shapes} shapes in {batches} batches: "
        f"{statistics.median(alone):,.0f} steps/s alone, {statistics.median(unattended):.3f} with a viewer, "
        f"{statistics.median(attended):.3f} with a browser; {100.0 * statistics.median(shares):.1f} % of a "
        f"core, {statistics.median(pictures):.0f} pictures/s of {1e3 * draws:.1f} + {1e3 * sends:.1f} ms and "
        f"{bytes_sent / 1e3:.0f} kB, {1e-6 * bytes_sent * statistics.median(pictures):.2f} MB/s"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.viewer", description=__doc__)
    parser.add_argument("--scene", default="quadruped", help="a scene, or the file of a robot")
    parser.add_argument("--worlds", type=int, default=256)
    parser.add_argument("--shown", type=int, nargs="+", default=[16, 100, 256])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--call", type=int, default=4, help="steps in one call")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_ERROR
    with scene_of(arguments.scene, ()) as (source, roots):
        scene = pv.load_scene(
            source, num_worlds=arguments.worlds, device="cpu", **({"asset_roots": roots} if roots else {})
        )
        for shown in arguments.shown:
            measure(scene, shown, arguments)


if __name__ == "__main__":
    main()
