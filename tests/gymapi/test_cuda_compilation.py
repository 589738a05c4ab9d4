"""Kernels of the actor API compile for CUDA, on machines without a GPU too."""

import pytest
import warp as wp

from pluriverse.gymapi import (
    ball_drives,
    body_forces,
    camera_images,
    contact_readings,
    env_cells,
    joint_efforts,
    matrices,
    sensor_readings,
    state_tensors,
)
from pluriverse.springs import bodies, coordinates
from tests.test_cuda_compilation import CUDA_ARCHITECTURE


@pytest.mark.parametrize(
    "kernel",
    [
        ball_drives.drive_ball,
        body_forces.sum_body_forces,
        camera_images.write_pixel,
        contact_readings.add_contact_forces,
        env_cells.find_stray,
        joint_efforts.add_joint_effort,
        matrices.copy_jacobian,
        sensor_readings.read_sensor,
        state_tensors.write_root_state,
        bodies.pull_body,
        coordinates.pull_joints,
    ],
    ids=lambda kernel: kernel.key,
)
def test_kernel_is_valid_cuda(kernel, tmp_path):
    files = wp.compile_aot_module(kernel.module, arch=CUDA_ARCHITECTURE, module_dir=tmp_path)
    assert sum(file.stat().st_size for file in files) > 0
