"""Names of mjlab and MuJoCo Warp: the page on porting lists each once, and what it points to exists."""

import ast
import importlib.metadata
import importlib.util
import re
from pathlib import Path

import pytest

import pluriverse as pv
from pluriverse.tensors import RobotTensors

PAGE = Path(__file__).resolve().parents[2] / "docs" / "porting_mjlab.md"
TABLES = PAGE.read_text().partition("<!-- names: begin -->")[2].partition("<!-- names: end -->")[0]
ROWS = re.findall(r"^\| (`.*?`) \| (.*) \|$", TABLES, flags=re.MULTILINE)
# Public names of the modules: the contents of `__all__`, terms, properties of entities.
LISTED = """
ManagerBasedRlEnvCfg ManagerBasedRlEnv ManagerBasedEnvCfg ManagerBasedEnv VecEnvStepReturn VecEnvObs
CommandManager CommandTerm CommandTermCfg CurriculumManager NullCommandManager NullCurriculumManager
ManagerTermBaseCfg ActionTermCfg CurriculumTermCfg EventTermCfg ObservationTermCfg
ObservationGroupCfg RewardTermCfg TerminationTermCfg SceneEntityCfg term base_lin_vel base_ang_vel
projected_gravity joint_pos_rel joint_vel_rel last_action generated_commands is_alive is_terminated
joint_torques_l2 joint_acc_l2 action_rate_l2 joint_pos_limits posture electrical_power_cost
flat_orientation_l2 time_out bad_orientation root_height_below_minimum reset_scene_to_default
reset_root_state_uniform reset_joints_by_scale push_by_setting_velocity apply_external_force_torque
randomize_field JointActionCfg JointPositionActionCfg track_lin_vel_exp track_ang_vel_exp
feet_air_time foot_clearance_reward feet_slide terrain_levels_vel VelocityStage commands_vel
UniformVelocityCommand UniformVelocityCommandCfg Entity EntityCfg EntityArticulationInfoCfg
EntityData EntityIndexing write_root_state write_root_pose write_root_velocity write_joint_state
write_joint_position write_joint_velocity write_external_wrench write_ctrl clear_state
root_link_pose_w root_link_vel_w root_com_pose_w root_com_vel_w body_link_pose_w body_link_vel_w
body_com_pose_w body_com_vel_w body_external_wrench geom_pose_w geom_vel_w site_pose_w site_vel_w
joint_pos joint_vel joint_acc joint_torques actuator_force generalized_force sensor_data
root_link_pos_w root_link_quat_w root_link_lin_vel_w root_link_ang_vel_w root_com_pos_w
root_com_quat_w root_com_lin_vel_w root_com_ang_vel_w body_link_pos_w body_link_quat_w
body_link_lin_vel_w body_link_ang_vel_w body_com_pos_w body_com_quat_w body_com_lin_vel_w
body_com_ang_vel_w body_external_force body_external_torque geom_pos_w geom_quat_w geom_lin_vel_w
geom_ang_vel_w site_pos_w site_quat_w site_lin_vel_w site_ang_vel_w projected_gravity_b heading_w
root_link_lin_vel_b root_link_ang_vel_b root_com_lin_vel_b root_com_ang_vel_b indexing data model
device default_root_state default_joint_pos default_joint_vel default_joint_stiffness
default_joint_damping default_joint_pos_limits joint_pos_limits soft_joint_pos_limits gravity_vec_w
forward_vec_b is_fixed_base is_articulated is_actuated Scene SceneCfg MujocoCfg SimulationCfg
Simulation WarpBridge TorchArray TerrainGenerator TerrainGeneratorCfg SubTerrainCfg TerrainImporter
TerrainImporterCfg BoxFlatTerrainCfg BoxPyramidStairsTerrainCfg BoxInvertedPyramidStairsTerrainCfg
BoxRandomGridTerrainCfg HfPyramidSlopedTerrainCfg HfRandomUniformTerrainCfg HfWaveTerrainCfg SpecCfg
TextureCfg MaterialCfg CollisionCfg LightCfg CameraCfg ActuatorCfg ActuatorSetCfg SensorCfg
ContactSensorCfg NoiseCfg ConstantNoiseCfg UniformNoiseCfg GaussianNoiseCfg NoiseModelCfg
NoiseModelWithAdditiveBiasCfg RslRlPpoActorCriticCfg RslRlPpoAlgorithmCfg RslRlBaseRunnerCfg
RslRlOnPolicyRunnerCfg RslRlVecEnvWrapper BaseViewer EnvProtocol PolicyProtocol NativeMujocoViewer
VerbosityLevel ViserViewer ViewerConfig
"""


def listed():
    return [name for names, _ in ROWS for name in re.findall(r"`(\w+)`", names)]


def in_section(title):
    """Return the names of one table."""
    section = TABLES.partition(f"### `{title}`")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| (`.*?`) \|", section, flags=re.MULTILINE)
    return sorted(name for names in rows for name in re.findall(r"`(\w+)`", names))


def test_the_page_lists_every_name_once():
    """A name of two tables is a name of two modules."""
    assert sorted(listed()) == sorted([*LISTED.split(), *in_section("mujoco_warp")])


def test_the_page_lists_what_mujoco_warp_has():
    spec = importlib.util.find_spec("mujoco_warp")
    if spec is None or spec.origin is None:
        pytest.skip("mujoco_warp is not installed")
    tree = ast.parse(Path(spec.origin).read_text())
    public = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    } - {"metadata"}
    # Other versions have a few more; none of those that this one has may be missing.
    if importlib.metadata.version("mujoco_warp").startswith("3.17."):
        assert sorted(public) == in_section("mujoco_warp")


@pytest.mark.parametrize(("names", "here"), ROWS, ids=[names[:40] for names, _ in ROWS])
def test_what_the_page_points_to_exists(names, here):
    """Dotted names load; those of the tensors of robots are there for a robot."""
    for dotted in re.findall(r"`(pluriverse(?:\.\w+)+)`", here):
        parts, value = dotted.split(".")[1:], pv
        for index, part in enumerate(parts):
            if not hasattr(value, part):
                value = importlib.import_module(".".join(["pluriverse", *parts[: index + 1]]))
            else:
                value = getattr(value, part)
    assert len(here) > len("no: ")


def test_tensors_that_the_page_names_exist():
    builder = pv.ModelBuilder()
    builder.add_mjcf(Path(pv.__file__).parent / "scenes" / "robots" / "puli.xml")
    tensors = pv.Simulation(builder.finalize("cpu"), dt=0.01).tensors("puli")
    assert isinstance(tensors, RobotTensors)
    wanted = set(re.findall(r"`RobotTensors\.(\w+)`", TABLES))
    assert wanted
    assert sorted(name for name in wanted if not hasattr(tensors.numpy, name)) == []
