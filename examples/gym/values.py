"""Vectors, rotations and poses on the host."""

import numpy as np

from pluriverse import gymapi


def main(words: list[str] | None = None) -> None:
    """Turn a point, invert a pose, and do the same for an array."""
    pose = gymapi.Transform(gymapi.Vec3(1.0, 2.0, 3.0), gymapi.Quat.from_euler_zyx(0.1, 0.2, 0.3))
    point = gymapi.Vec3(1.0, 0.0, 0.0)
    there = pose.transform_point(point)
    back = pose.inverse().transform_point(there)
    print("there", there, "back", back)
    points = np.zeros(3, gymapi.Vec3.dtype)
    points["x"] = np.arange(3)
    print("array", pose.transform_points(points)["x"].round(3).tolist())
    print("angles", np.round(pose.r.to_euler_zyx(), 6).tolist())
    print("cross", gymapi.Vec3(1, 0, 0).cross(gymapi.Vec3(0, 1, 0)))


if __name__ == "__main__":
    main()
