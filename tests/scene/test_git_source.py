"""Assets from git: local repositories stand for those of the network."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pluriverse.config import is_offline
from pluriverse.scene import SapSceneLoaderError, git_source, load_scene
from pluriverse.scene.asset_cache import AssetFetchError, cache_folder
from pluriverse.scene.git_source import GitSource, checkout, git_protocol

from .scene_files import write_scene

ROBOT = (
    "<mujoco><asset><mesh name='m' file='../meshes/part.obj'/></asset><worldbody><body name='link'>"
    "<freejoint/><geom type='mesh' mesh='m'/></body></worldbody></mujoco>"
)
MESH = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def git(folder: Path, *arguments: str) -> str:
    names = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    result = subprocess.run(
        ["git", *names, *arguments], cwd=folder, check=True, capture_output=True, text=True, env=environment
    )
    return result.stdout.strip()


def commit_files(repository: Path, files: dict[str, str]) -> str:
    """Write files into a repository, made if need be, and return the id of their commit."""
    repository.mkdir(exist_ok=True)
    if not (repository / ".git").exists():
        git(repository, "init", "--quiet")
    for name, text in files.items():
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "-m", "files")
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return the folder of an empty cache."""
    monkeypatch.setenv("SAP_WARP_ASSET_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SAP_WARP_ASSET_OFFLINE", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def repository(tmp_path):
    """Return a repository with a robot, its meshes, and much else; and the commit."""
    folder = tmp_path / "repository"
    files = {"robot/xml/robot.xml": ROBOT, "robot/meshes/part.obj": MESH, "other/large.txt": "no\n" * 1000}
    return folder, commit_files(folder, files)


def source_of(repository: Path, commit: str, **fields: object) -> GitSource:
    fields = {"path": "robot/xml/robot.xml", "sparse": ["robot/xml", "robot/meshes"]} | fields
    return GitSource.model_validate({"repo": f"file://{repository}", "rev": commit, **fields})


def files_below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def scene_of(repository: Path, commit: str, sparse: str = "[robot/xml, robot/meshes]") -> str:
    return (
        f"assets:\n  - id: robot\n    type: mjcf\n    source:\n      git:\n        repo: file://{repository}\n"
        f"        rev: {commit}\n        sparse: {sparse}\n        path: robot/xml/robot.xml\n"
    )


def test_a_scene_gets_the_files_of_one_commit_and_only_the_folders_it_names(tmp_path, cache, repository):
    """The robot of the pinned commit loads although the branch has moved on."""
    folder, commit = repository
    commit_files(folder, {"robot/xml/robot.xml": "<broken"})
    scene = write_scene(tmp_path, scene_of(folder, commit))
    assert load_scene(scene, device="cpu").model.body_count == 1
    [entry] = [path for path in (cache / "git").glob("*/*") if path.is_dir()]
    assert entry.name.startswith(commit)
    assert files_below(entry / "files") == ["robot/meshes/part.obj", "robot/xml/robot.xml"]


def test_the_cache_serves_without_the_repository_and_offline(tmp_path, cache, repository, monkeypatch):
    folder, commit = repository
    scene = write_scene(tmp_path, scene_of(folder, commit))
    load_scene(scene, device="cpu")
    folder.rename(tmp_path / "gone")
    load_scene(scene, device="cpu")
    monkeypatch.setenv("SAP_WARP_ASSET_OFFLINE", "1")
    load_scene(scene, device="cpu")


def test_offline_an_asset_that_is_not_cached_is_an_error(tmp_path, cache, repository, monkeypatch):
    scene = write_scene(tmp_path, scene_of(*repository))
    monkeypatch.setenv("SAP_WARP_ASSET_OFFLINE", "yes")
    with pytest.raises(SapSceneLoaderError, match=r"scene\.yaml:5: .*SAP_WARP_ASSET_OFFLINE forbids"):
        load_scene(scene, device="cpu")
    assert not cache.exists()


def test_a_file_in_a_submodule_names_the_other_repository(tmp_path, cache, repository):
    """Submodules are not fetched: their folder is empty, and the message says where the file is."""
    inner, _ = repository
    outer = tmp_path / "outer"
    commit_files(outer, {"README": "robots\n"})
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(inner), "parts/robots")
    git(outer, "commit", "--quiet", "-m", "submodule")
    source = source_of(
        outer, git(outer, "rev-parse", "HEAD"), path="parts/robots/robot/xml/robot.xml", sparse=["parts"]
    )
    message = rf"in the submodule 'parts/robots', .*\({inner}\), .* path: robot/xml/robot.xml"
    with pytest.raises(AssetFetchError, match=message):
        checkout(source, [tmp_path])


def test_the_documented_variables_say_where_and_whether(monkeypatch, tmp_path):
    monkeypatch.delenv("SAP_WARP_ASSET_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "sap_warp" / "assets"
    monkeypatch.setenv("SAP_WARP_ASSET_CACHE", "/somewhere")
    assert cache_folder() == Path("/somewhere")
    for text, expected in (
        ("1", True),
        ("true", True),
        ("YES", True),
        ("on", True),
        ("0", False),
        ("", False),
    ):
        monkeypatch.setenv("SAP_WARP_ASSET_OFFLINE", text)
        assert is_offline() is expected


def test_a_checkout_of_another_program_serves_offline(tmp_path, cache, repository, monkeypatch):
    """Its layout is the address and the commit; its commit is looked at, and the wanted folders."""
    folder, commit = repository
    source = source_of(folder, commit)
    key = f"file_{folder}".replace("/", "_").replace("__", "_")
    theirs = cache / "git" / key / commit
    theirs.parent.mkdir(parents=True)
    git(tmp_path, "clone", "--quiet", str(folder), str(theirs))
    git(theirs, "checkout", "--quiet", "--detach", commit)
    monkeypatch.setenv("SAP_WARP_ASSET_OFFLINE", "1")
    assert checkout(source, [tmp_path]) == theirs
    monkeypatch.delenv("SAP_WARP_ASSET_OFFLINE")
    assert checkout(source, [tmp_path]) == theirs  # nothing is fetched twice
    monkeypatch.setenv("SAP_WARP_ASSET_OFFLINE", "1")
    with pytest.raises(AssetFetchError, match="OFFLINE"):
        checkout(source_of(folder, commit, sparse=["robot/xml", "missing"]), [tmp_path])


def test_sparse_folders(tmp_path, cache, repository):
    """One folder as a word, the folder of the file by default, a dot for everything."""
    folder, commit = repository
    default = checkout(source_of(folder, commit, sparse=None), [tmp_path])
    assert files_below(default) == ["robot/xml/robot.xml"]
    word = checkout(source_of(folder, commit, sparse="robot"), [tmp_path])
    assert files_below(word) == ["robot/meshes/part.obj", "robot/xml/robot.xml"]
    everything = checkout(source_of(folder, commit, sparse=["."]), [tmp_path])
    assert "other/large.txt" in files_below(everything)
    # None of them has taken anything from another.
    assert files_below(default) == ["robot/xml/robot.xml"]


ADDRESSES = [
    "-oProxyCommand=touch pwned",
    "--upload-pack=touch pwned",
    "ext::sh -c touch% pwned",
    "ext::https://example.org/a",
    "fd::17/foo",
    "file::///tmp/a",
    "http://example.org/a.git",
    "git://example.org/a.git",
    "ftp://example.org/a.git",
    "https://user:secret@example.org/a.git",
    "https://token@example.org/a.git",
    "https://-example.org/a.git",
    "https://example.org/a.git\n--upload-pack=x",
    "https://example.org/a.git --upload-pack=x",
    "https://example.org/a\x00b",
    "https:///a.git",
    "https://example.org",
    "ssh://-oProxyCommand=touch/a",
    "ssh://user@-oProxyCommand=touch/a",
    "ssh://-oUser=x@example.org/a",
    "user@-oProxyCommand=touch:a",
    "-user@example.org:a",
    "user@example.org:-a",
    "user@example.org:--upload-pack=x",
    "file://host/a",
    "file:///a\n",
    "/tmp/a",
    "../a",
    "C:\\a",
    "",
    " https://example.org/a",
    "https://example.org/a?x=y",
    "https://example.org/a#x",
    "$(touch pwned)",
    "`touch pwned`",
    3,
    None,
    ["https://example.org/a"],
]


@pytest.mark.parametrize("address", ADDRESSES, ids=repr)
def test_an_address_that_could_be_something_else_is_refused(address):
    fields = {"repo": address, "rev": COMMIT, "path": "a/b"}
    with pytest.raises(ValueError, match=r"not an address|not the address|name or password"):
        GitSource.model_validate(fields)


@pytest.mark.parametrize(
    ("address", "protocol"),
    [
        ("https://github.com/newton-physics/newton-assets.git", "https"),
        ("https://git.example.org:8443/~user/a+b%20c.git", "https"),
        ("ssh://git@example.org:22/robots.git", "ssh"),
        ("git@github.com:company/robots.git", "ssh"),
        ("file:///srv/robots.git", "file"),
    ],
)
def test_addresses_of_repositories_are_known_by_their_protocol(address, protocol):
    assert git_protocol(address) == protocol


@pytest.mark.parametrize(
    "revision",
    [
        "main",
        "v1.0",
        "HEAD",
        COMMIT[:12],
        COMMIT + "0",
        "-x",
        "--all",
        f"{COMMIT}^",
        "refs/heads/a",
        "",
        7,
        None,
    ],
)
def test_a_revision_is_a_full_commit_id(revision):
    """Everything else could mean another commit tomorrow, or an option."""
    with pytest.raises(ValueError, match="not a full commit id"):
        GitSource.model_validate({"repo": "https://example.org/a", "rev": revision, "path": "a"})


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../a",
        "a/../../b",
        "a\\..\\b",
        "C:/a",
        ".git/config",
        "a/.GIT/hooks/x",
        "a\nb",
        "a\x00",
        "",
        1,
    ],
)
@pytest.mark.parametrize("field", ["path", "sparse"])
def test_paths_stay_inside_of_the_repository(path, field):
    fields = {"repo": "https://example.org/a", "rev": COMMIT, "path": "a"}
    fields[field] = path if field == "path" else [path]
    with pytest.raises(ValueError, match=r"root of the repository|inside|leads out|cannot be"):
        GitSource.model_validate(fields)


def test_a_folder_called_like_an_option_is_a_folder(tmp_path, cache):
    folder = tmp_path / "repository"
    commit = commit_files(folder, {"--help/a.xml": "x", "b/c.xml": "y"})
    files = checkout(source_of(folder, commit, path="--help/a.xml", sparse=None), [tmp_path])
    assert files_below(files) == ["--help/a.xml"]


def test_a_local_repository_must_lie_where_the_scene_may_read(tmp_path, cache, repository):
    with pytest.raises(AssetFetchError, match="outside of the folders that this scene may read"):
        checkout(source_of(*repository), [tmp_path / "elsewhere"])
    link = tmp_path / "elsewhere" / "link"
    link.parent.mkdir()
    link.symlink_to(repository[0])
    with pytest.raises(AssetFetchError, match="outside"):
        checkout(source_of(link, repository[1]), [tmp_path / "elsewhere"])


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../../../../../../../../etc/passwd", "/etc", "../../..", "loop"]
)
def test_links_out_of_the_checkout_are_refused(tmp_path, cache, target):
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "a").mkdir()
    (folder / "a" / "loop").symlink_to(target)
    commit = commit_files(folder, {"a/robot.xml": ROBOT})
    with pytest.raises(AssetFetchError, match="link 'a/loop' of the repository leads out of it"):
        checkout(source_of(folder, commit, path="a/robot.xml", sparse=None), [tmp_path])
    assert not [path for path in (cache / "git").glob("*/*") if path.is_dir()]


def test_links_inside_of_the_checkout_work(tmp_path, cache):
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "robot").mkdir()
    (folder / "robot" / "link.xml").symlink_to("../robot/real.xml")
    commit = commit_files(folder, {"robot/real.xml": "<mujoco/>"})
    files = checkout(source_of(folder, commit, path="robot/link.xml", sparse=None), [tmp_path])
    assert (files / "robot/link.xml").read_text() == "<mujoco/>"


def test_a_link_put_into_the_cache_later_is_found(tmp_path, cache, repository):
    files = checkout(source_of(*repository), [tmp_path])
    (files / "robot" / "evil").symlink_to("/etc/passwd")
    with pytest.raises(AssetFetchError, match="leads out of it"):
        checkout(source_of(*repository), [tmp_path])


def test_what_a_checked_out_robot_refers_to_stays_inside_of_the_checkout(tmp_path, cache):
    """A mesh beside the cache is readable for this process, and none of the robot's business."""
    secret = tmp_path / "secret.obj"
    secret.write_text(MESH)
    folder = tmp_path / "repository"
    text = ROBOT.replace("../meshes/part.obj", str(secret))
    commit = commit_files(folder, {"robot/xml/robot.xml": text})
    scene = write_scene(tmp_path, scene_of(folder, commit, sparse="robot/xml"))
    with pytest.raises(SapSceneLoaderError, match=r"secret\.obj' lies outside of the folders"):
        load_scene(scene, device="cpu")


def test_other_protocols_are_closed_to_git_itself(tmp_path, cache, repository, monkeypatch):
    """Even where git's own configuration turns an allowed address into a command."""
    configuration = tmp_path / "gitconfig"
    configuration.write_text(
        f'[url "ext::touch {tmp_path}/pwned %S"]\n  insteadOf = file://{repository[0]}\n'
        "[protocol]\n  allow = always\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(configuration))
    with pytest.raises(AssetFetchError, match="'ext' not allowed"):
        checkout(source_of(*repository), [tmp_path])
    assert not (tmp_path / "pwned").exists()


def test_hooks_and_the_environment_of_another_repository_do_not_reach_in(
    tmp_path, cache, repository, monkeypatch
):
    template = tmp_path / "template" / "hooks"
    template.mkdir(parents=True)
    hook = template / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/pwned\n")
    hook.chmod(0o755)
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(template.parent))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "nowhere"))
    files = checkout(source_of(*repository), [tmp_path])
    assert files_below(files) == ["robot/meshes/part.obj", "robot/xml/robot.xml"]
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"path": "robot/xml/other.xml"}, r"has no file 'robot/xml/other.xml' in the folders"),
        ({"path": "other/large.txt"}, r"add its folder to 'sparse'"),
        ({"rev": COMMIT}, r"git could not fetch .* \(git fetch\)"),
    ],
)
def test_what_the_repository_does_not_have_is_an_error_and_leaves_nothing(
    tmp_path, cache, repository, fields, message
):
    folder, commit = repository
    with pytest.raises(AssetFetchError, match=message):
        checkout(
            source_of(folder, **({"commit": commit} | {"commit": fields.pop("rev", commit)}), **fields),
            [tmp_path],
        )
    assert not [path for path in (cache / "git").glob("*/*") if path.is_dir()]


def test_files_kept_elsewhere_are_named(tmp_path, cache):
    folder = tmp_path / "repository"
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"
    commit = commit_files(folder, {"a/robot.xml": ROBOT, "a/mesh.obj": pointer})
    with pytest.raises(AssetFetchError, match=r"'a/mesh.obj' is kept in Git LFS"):
        checkout(source_of(folder, commit, path="a/robot.xml", sparse=None), [tmp_path])


def install_git(folder: Path, monkeypatch, script: str) -> None:
    """Put a program called git before the real one, which it finds as $REAL_GIT."""
    real = subprocess.run(["which", "git"], check=True, capture_output=True, text=True).stdout.strip()
    folder.mkdir()
    program = folder / "git"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("REAL_GIT", real)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_a_broken_download_leaves_no_part_of_itself(tmp_path, cache, repository, monkeypatch):
    """A checkout that ends after some files counts for nothing; the next attempt begins anew."""
    with monkeypatch.context() as patch:
        script = 'case "$*" in *"checkout"*) mkdir -p robot/xml; echo half > robot/xml/robot.xml; '
        install_git(
            tmp_path / "bin",
            patch,
            script + 'echo "the remote hung up" >&2; exit 1;; esac; exec "$REAL_GIT" "$@"',
        )
        with pytest.raises(AssetFetchError, match=r"the remote hung up"):
            checkout(source_of(*repository), [tmp_path])
    assert not [path for path in (cache / "git").glob("*/*") if path.is_dir()]
    assert (checkout(source_of(*repository), [tmp_path]) / "robot/xml/robot.xml").read_text() == ROBOT


def test_a_fetch_that_takes_forever_is_given_up(tmp_path, cache, repository, monkeypatch):
    run, pid_file = git_source._run_git, tmp_path / "pid"

    def hurry(*arguments, deadline, **options):
        """Leave little time for the fetch alone: what comes before it may be slow on a busy machine."""
        is_fetch = "fetch" in arguments[2]
        run(*arguments, deadline=time.monotonic() + 1.0 if is_fetch else deadline, **options)

    monkeypatch.setattr(git_source, "_run_git", hurry)
    install_git(
        tmp_path / "bin",
        monkeypatch,
        f'case "$*" in *" fetch "*) sleep 600 & echo $! > {pid_file}; wait;; esac; exec "$REAL_GIT" "$@"',
    )
    begin = time.monotonic()
    with pytest.raises(AssetFetchError, match="was not fetched within"):
        checkout(source_of(*repository), [tmp_path])
    assert time.monotonic() - begin < 300.0
    # With everything that it had started.
    deadline = time.monotonic() + 300.0
    while Path(f"/proc/{pid_file.read_text().strip()}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_damaged_entry_is_fetched_again(tmp_path, cache, repository):
    files = checkout(source_of(*repository), [tmp_path])
    (files / "robot/xml/robot.xml").write_text("cut")
    again = checkout(source_of(*repository), [tmp_path])
    assert (again / "robot/xml/robot.xml").read_text() == ROBOT
    (again / "robot/meshes/part.obj").unlink()
    assert (checkout(source_of(*repository), [tmp_path]) / "robot/meshes/part.obj").read_text() == MESH


FETCH = """
import sys
from pathlib import Path
from pluriverse.scene.git_source import GitSource, checkout
repo, rev = sys.argv[1:3]
source = GitSource(repo=repo, rev=rev, path="robot/xml/robot.xml", sparse=["robot"])
print(checkout(source, [Path(sys.argv[3])]))
"""


def start_fetch(repository: tuple[Path, str], root: Path) -> subprocess.Popen:
    command = [sys.executable, "-c", FETCH, f"file://{repository[0]}", repository[1], str(root)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_processes_that_want_the_same_asset_fetch_it_once(tmp_path, cache, repository, monkeypatch):
    """One fetches, slowly; the others wait and use what it fetched."""
    log = tmp_path / "log"
    install_git(
        tmp_path / "bin",
        monkeypatch,
        f'case "$*" in *" fetch "*) echo fetch >> {log}; sleep 1;; esac; exec "$REAL_GIT" "$@"',
    )
    processes = [start_fetch(repository, tmp_path) for _ in range(3)]
    outputs = [process.communicate(timeout=600) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    assert len({out for out, _ in outputs}) == 1
    assert log.read_text().split() == ["fetch"]
    assert files_below(Path(outputs[0][0].strip())) == ["robot/meshes/part.obj", "robot/xml/robot.xml"]


def test_a_killed_process_blocks_nobody(tmp_path, cache, repository, monkeypatch):
    started = tmp_path / "started"
    with monkeypatch.context() as patch:
        install_git(
            tmp_path / "bin",
            patch,
            f'case "$*" in *" fetch "*) touch {started}; exec sleep 600;; esac; exec "$REAL_GIT" "$@"',
        )
        process = start_fetch(repository, tmp_path)
        while not started.exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
    source = source_of(*repository, sparse=["robot"])
    assert "robot/xml/robot.xml" in files_below(checkout(source, [tmp_path]))
