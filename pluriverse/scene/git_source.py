"""Assets from git: a sparse checkout of one commit, fetched once into the cache.

A scene may come from anywhere, so nothing in it reaches git as an option, a command or another transport:
addresses are of known protocols and forms, a revision is a full commit id, paths are plain relative paths,
and nothing asks for a password. What was checked out must not point out of itself.
"""

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any
from urllib.parse import unquote

from pydantic import Field, PlainValidator, WithJsonSchema, field_validator

from pluriverse.config import OFFLINE_VARIABLE, is_offline
from pluriverse.files import is_lfs_pointer
from pluriverse.scene.asset_cache import (
    AssetFetchError,
    cache_folder,
    store,
    stored_files,
)
from pluriverse.scene.errors import FieldError
from pluriverse.scene.mapping import SceneMapping
from pluriverse.scene.values import reported, shown

# A fetch that takes longer is given up [s]. A large repository of robots takes a minute or two.
FETCH_TIME_MAX = 1200.0

_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
_USER = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_PATH = r"[A-Za-z0-9._~%+][A-Za-z0-9._~%+/-]*"
# The addresses that are known to be one, by the protocol that git is then allowed to use.
_ADDRESSES = {
    "https": re.compile(rf"https://{_HOST}(?::[0-9]{{1,5}})?/{_PATH}"),
    "ssh": re.compile(rf"ssh://(?:{_USER}@)?{_HOST}(?::[0-9]{{1,5}})?/{_PATH}|{_USER}@{_HOST}:/?{_PATH}"),
    "file": re.compile(r"file:///[^\x00-\x1f\x7f?#]+"),
}
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# No file of more bytes is opened to see whether it is a pointer of Git LFS.
LFS_POINTER_SIZE_MAX = 1024


def git_protocol(address: str) -> str | None:
    """Return the protocol of the address of a repository, or None if it is none that is allowed."""
    return next((name for name, form in _ADDRESSES.items() if form.fullmatch(address)), None)


def _parse_repository(value: Any) -> str:
    if not isinstance(value, str):
        raise FieldError(f"{shown(value)} is not the address of a git repository")
    if git_protocol(value) is None:
        if re.match(r"https://[^/]*@", value):
            raise FieldError(
                "an address with a name or password in it would be shown in messages; leave both out and let "
                "git's credential helper give them"
            )
        raise FieldError(
            f"{shown(value)} is not an address that may be fetched from; write https://HOST/PATH, "
            "ssh://USER@HOST/PATH, USER@HOST:PATH or file:///PATH"
        )
    return value


def _parse_commit(value: Any) -> str:
    if not isinstance(value, str) or not _COMMIT.fullmatch(value.lower()):
        raise FieldError(
            f"{shown(value)} is not a full commit id, which has 40 hexadecimal digits; branches, tags and "
            "short ids may mean another commit tomorrow (git ls-remote lists the ids of both)"
        )
    return value.lower()


def parse_inner_path(value: Any, *path: str | int) -> str:
    """Return a path inside of a checkout: relative, with `/`, and without `..`.

    Raises:
        FieldError: It is something else.
    """
    if not isinstance(value, str) or not value.strip():
        raise FieldError(f"{shown(value)} is not a path inside of the repository", *path)
    parts = PurePosixPath(value).parts
    if value.startswith("/") or "\\" in value or re.match(r"[A-Za-z]:", value):
        raise FieldError(f"{shown(value)} must be relative to the root of the repository, with /", *path)
    if ".." in parts:
        raise FieldError(f"{shown(value)} leads out of the repository; write it without '..'", *path)
    if any(part.lower() == ".git" for part in parts) or not value.isprintable():
        raise FieldError(f"{shown(value)} cannot be the path of an asset", *path)
    return PurePosixPath(value).as_posix()


_TEXT = {"type": "string"}
Repository = Annotated[
    str,
    PlainValidator(reported(_parse_repository)),
    WithJsonSchema({**_TEXT, "description": "https://, ssh://, USER@HOST:PATH or file:/// address"}),
]
Commit = Annotated[
    str,
    PlainValidator(reported(_parse_commit)),
    WithJsonSchema({**_TEXT, "pattern": "^([0-9a-fA-F]{40}|[0-9a-fA-F]{64})$"}),
]
InnerPath = Annotated[str, PlainValidator(reported(parse_inner_path)), WithJsonSchema(_TEXT)]
_Folders = Annotated[
    list[InnerPath],
    Field(min_length=1),
    WithJsonSchema({"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]}),
]


class GitSource(SceneMapping):
    """A file of a commit of a git repository."""

    repo: Repository
    rev: Commit = Field(description="full commit id")
    path: InnerPath = Field(description="the file, relative to the root of the repository")
    sparse: _Folders | None = Field(
        default=None, description="folders to check out; that of the file if not given, '.' for all"
    )

    @field_validator("sparse", mode="before")
    @classmethod
    def _one_folder(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    def folders(self) -> list[str]:
        """Return the folders to check out, in order and each once."""
        folders = self.sparse if self.sparse is not None else [PurePosixPath(self.path).parent.as_posix()]
        return ["."] if "." in folders else sorted(set(folders))

    def entry(self) -> Path:
        """Return the folder of this source in the cache."""
        folders = hashlib.sha256("\n".join(self.folders()).encode()).hexdigest()[:8]
        address = hashlib.sha256(self.repo.encode()).hexdigest()[:8]
        return cache_folder() / "git" / f"{self._key()[:100]}-{address}" / f"{self.rev}-{folders}"

    def _key(self) -> str:
        return re.sub(r"[^A-Za-z0-9_.-]+", "_", self.repo).strip("_")

    def _entry_of_others(self) -> Path | None:
        """Return the checkout that another program with the same cache made of the same commit."""
        folder = cache_folder() / "git" / self._key() / self.rev
        try:
            head = (folder / ".git" / "HEAD").read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return None
        complete = all((folder / folder_name).is_dir() for folder_name in self.folders())
        complete = complete and (folder / self.path).exists()
        return folder if head == self.rev and complete else None


def checkout(source: GitSource, allowed_roots: Sequence[Path]) -> Path:
    """Return the folder that the root of the repository became, fetched if it is not in the cache.

    Args:
        source: The source.
        allowed_roots: Folders in which a repository of `file:///` may lie.

    Raises:
        AssetFetchError: It cannot be fetched, or may not be.
    """
    protocol = git_protocol(source.repo)
    assert protocol is not None
    if protocol == "file":
        _check_local_repository(source.repo, allowed_roots)
    files = stored_files(source.entry())
    if files is None:
        files = source._entry_of_others()
    if files is None and is_offline():
        raise AssetFetchError(
            f"{source.repo} at {source.rev} is not in the asset cache ('{source.entry()}'), and "
            f"{OFFLINE_VARIABLE} forbids to fetch it; unset it once, or copy the cache from a machine "
            "that has it"
        )
    if files is None:
        description = {"repo": source.repo, "rev": source.rev, "sparse": source.folders()}
        files = store(
            source.entry(), description, lambda folder: _fetch(source, protocol, folder), wait=FETCH_TIME_MAX
        )
    check_links(files)
    return files


def _check_local_repository(address: str, allowed_roots: Sequence[Path]) -> None:
    repository = Path(unquote(address.removeprefix("file://"))).resolve()
    if not any(repository.is_relative_to(root) for root in allowed_roots):
        roots = ", ".join(f"'{root}'" for root in allowed_roots)
        raise AssetFetchError(
            f"the repository '{repository}' lies outside of the folders that this scene may read ({roots}); "
            "add its folder with asset_roots= (--asset-root)"
        )


def check_links(folder: Path) -> None:
    """Check that no symbolic link below a folder leads out of it.

    Raises:
        AssetFetchError: One does.
    """
    root = folder.resolve()
    for parent, names, files in os.walk(folder):
        for name in [*names, *files]:
            path = Path(parent, name)
            if path.is_symlink() and _leads_out(path, root):
                raise AssetFetchError(
                    f"the link '{path.relative_to(folder)}' of the repository leads out of it (to "
                    f"{os.readlink(path)!r}), so its files are not used; choose folders (sparse) without it"
                )


def _leads_out(path: Path, root: Path) -> bool:
    """Return whether a link leads out of a folder, or in circles."""
    try:
        actual = path.resolve(strict=True)
    except FileNotFoundError:  # it leads to a file that is not checked out
        actual = path.resolve()
    except (OSError, RuntimeError):  # a link to itself
        return True
    return not actual.is_relative_to(root)


def _fetch(source: GitSource, protocol: str, folder: Path) -> None:
    """Check out the folders of a source."""
    if shutil.which("git") is None:
        raise AssetFetchError("git is not installed; install it, or use a local path as the source")
    deadline = time.monotonic() + FETCH_TIME_MAX
    folders = source.folders()

    def git(*arguments: str, text: str = "") -> None:
        _run_git(source, folder, arguments, protocol=protocol, deadline=deadline, text=text)

    git("init", "--quiet", "--template=")
    git("remote", "add", "origin", source.repo)
    # The commit alone, and of its files only those that the checkout then asks for.
    git("fetch", "--quiet", "--depth=1", "--no-tags", "--filter=blob:none", "origin", source.rev)
    if folders != ["."]:
        git("sparse-checkout", "set", "--cone", "--stdin", text="".join(f"{name}\n" for name in folders))
    git("checkout", "--quiet", "--detach", source.rev)
    shutil.rmtree(folder / ".git")
    check_links(folder)
    path = folder / source.path
    if not path.exists():
        _check_submodules(source, folder)
        raise AssetFetchError(
            f"{source.repo} at {source.rev} has no file '{source.path}' in the folders that were checked out "
            f"({', '.join(folders)}); correct 'path', or add its folder to 'sparse'"
        )
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_size <= LFS_POINTER_SIZE_MAX and is_lfs_pointer(path):
            raise AssetFetchError(
                f"'{path.relative_to(folder)}' is kept in Git LFS, which is not fetched; clone {source.repo} "
                "by hand and give the local path as the source"
            )


def _check_submodules(source: GitSource, folder: Path) -> None:
    """Check that the file of a source does not lie in another repository that this one refers to.

    Raises:
        AssetFetchError: It does.
    """
    list_of_submodules = folder / ".gitmodules"
    if not list_of_submodules.is_file():
        return
    text = list_of_submodules.read_text(encoding="utf-8", errors="replace")
    for part in text.split("[submodule ")[1:]:
        settings = dict(re.findall(r"^\s*(path|url)\s*=\s*(.*?)\s*$", part, re.MULTILINE))
        inner = PurePosixPath(settings.get("path", "/"))
        if PurePosixPath(source.path).is_relative_to(inner):
            rest = PurePosixPath(source.path).relative_to(inner)
            address = "".join(letter for letter in settings.get("url", "") if letter.isprintable())
            raise AssetFetchError(
                f"'{source.path}' lies in the submodule '{inner}', which is not fetched; name its own "
                f"repository ({address[:200] or 'see .gitmodules'}), the commit of that, and path: {rest}"
            )


# Variables of git's environment that concern the machine and not another repository.
_KEPT_VARIABLES = re.compile(
    r"GIT_(SSH|SSH_COMMAND|SSH_VARIANT|SSL_.*|PROXY_.*|CONFIG_GLOBAL|CONFIG_SYSTEM|CONFIG_NOSYSTEM|EXEC_PATH)"
)
_SETTINGS = (
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "core.autocrlf=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "http.lowSpeedLimit=1000",  # bytes a second, for a minute: a server that went away
    "http.lowSpeedTime=60",
)


def _run_git(
    source: GitSource, folder: Path, arguments: Sequence[str], *, protocol: str, deadline: float, text: str
) -> None:
    """Run a git command in a folder, without questions, hooks, and other protocols than the one given."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or _KEPT_VARIABLES.fullmatch(name)
    }
    environment |= {
        "GIT_ALLOW_PROTOCOL": protocol,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",  # answers every question with nothing
        "SSH_ASKPASS_REQUIRE": "never",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "LC_ALL": "C",
    }
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    process = subprocess.Popen(
        ["git", *settings, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,  # no terminal to ask on, and one group to end
    )
    try:
        _, complaint = process.communicate(text, timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise AssetFetchError(
            f"{source.repo} was not fetched within {FETCH_TIME_MAX:.0f} s; try again, or clone it by hand "
            "and give the local path as the source"
        ) from error
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError, AttributeError):  # no groups on Windows
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait()
    if process.returncode != 0:
        lines = [line for line in complaint.splitlines() if line.strip()]
        said = "".join(letter for letter in "; ".join(lines[-3:]) if letter.isprintable())
        raise AssetFetchError(
            f"git could not fetch {source.repo} at {source.rev} (git {arguments[0]}): {said or 'no reason'}"
        )
