"""Finds what a test left behind: processes, sockets, mounts and files.

Everything of a test lies below one folder with a random name, so whatever has
that name in its command line, its environment, its working folder or its open
files belongs to the test.
"""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time


def _read(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        return b""


def _link(path):
    try:
        return os.readlink(path).encode()
    except OSError:
        return b""


def _ancestors():
    """This process and those above it, which belong to whoever runs the test."""
    found, pid = set(), os.getpid()
    while pid > 0:
        found.add(pid)
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        pid = int(fields[1]) if len(fields) > 1 else 0
    return found


def command_line(pid):
    return _read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace").strip()


def is_alive(pid):
    """Whether a process runs; one that has ended and was not waited for does not."""
    state = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return bool(state) and state[0] not in (b"Z", b"X")


def processes(root):
    """The pids of the living processes that belong to the folder `root`."""
    mark, found = str(root).encode(), []
    ours = _ancestors()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in ours:
            continue
        if not is_alive(name):
            continue
        if (mark in _read(f"/proc/{name}/cmdline") or mark in _read(f"/proc/{name}/environ")
                or mark in _link(f"/proc/{name}/cwd")):
            found.append(int(name))
    return found


def files_below(folder):
    """The files that are in a folder while others may remove some."""
    for parent, _, names in os.walk(folder):
        for name in names:
            yield pathlib.Path(parent, name)


def leaks(root, images):
    """What is left, in words, grouped by kind.  `root` is the test's folder,
    `images` that of the guest images, which outlives it."""
    root = pathlib.Path(root)
    found = {}

    def add(kind, what):
        found.setdefault(kind, []).append(what)

    for pid in processes(root):
        add("process", f"{pid}: {command_line(pid)}")
    for line in _read("/proc/net/unix").decode(errors="replace").splitlines():
        if str(root) in line:
            add("socket", line.split()[-1])
    for path in files_below(root):
        if path.is_socket():
            add("socket file", str(path))
    for line in _read("/proc/self/mountinfo").decode(errors="replace").splitlines():
        if str(root) in line:
            add("mount", line)
    for place in ("vms", "probes"):
        folder = root / "state/fuse/agent-state" / place
        if folder.is_dir():
            for path in sorted(folder.iterdir()):
                add("folder of a VM", str(path))
    for path in sorted((root / "tmp").iterdir()):
        add("temporary file", str(path))
    for path in sorted(pathlib.Path(images).glob(".bake-*")):
        add("folder of a bake", str(path))
    for path in sorted(files_below(images)):
        if ".new-" in path.name:
            add("half-written file", str(path))
    return found


def kill_all(root):
    """Ends what is left of a test that failed."""
    for _ in range(50):
        left = processes(root)
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.1)


def check_the_checker(root):
    """Plants one leak of each kind below `root`, an empty folder, and makes sure
    that each is found and that nothing is once they are gone."""
    root = pathlib.Path(root)
    vm = root / "state/fuse/agent-state/vms/01PLANTED"
    images = root / "planted-images"
    for folder in (vm, root / "tmp", images / "initrd"):
        folder.mkdir(parents=True)
    half = images / "initrd/key.cpio.new-0"
    bake = images / ".bake-planted"
    file = root / "tmp/planted"
    half.touch()
    bake.mkdir()
    file.touch()

    sleep = [sys.executable, "-c", "import time; print(flush=True); time.sleep(1000)"]
    plain = {"PATH": os.environ.get("PATH", "")}
    planted = [
        subprocess.Popen([*sleep, str(root)], env=plain, cwd="/", stdout=subprocess.PIPE),
        subprocess.Popen(sleep, env={**plain, "HOME": f"{root}/home"}, cwd="/",
                         stdout=subprocess.PIPE),
        subprocess.Popen(sleep, env=plain, cwd=vm, stdout=subprocess.PIPE),
    ]
    for process in planted:
        process.stdout.readline()
    with socket.socket(socket.AF_UNIX) as listener:
        # By a short name, since the folder's may be longer than a socket's can be.
        listener.bind(_short(root) + "/tmp/s")
        found = leaks(root, images)
        seen = {int(what.split(":")[0]) for what in found.get("process", [])}
    for process in planted:
        process.kill()
        process.wait()
        process.stdout.close()
    expected = {"process", "socket", "socket file", "folder of a VM", "temporary file",
                "folder of a bake", "half-written file"}
    if set(found) != expected or seen != {process.pid for process in planted}:
        raise AssertionError(f"the leak checker missed a planted leak; it found {found}")

    for path in (half, file, root / "tmp/s"):
        path.unlink()
    for folder in (bake, vm):
        folder.rmdir()
    found = leaks(root, images)
    if found:
        raise AssertionError(f"the leak checker sees leaks that are not there: {found}")


def _short(root):
    if len(str(root)) > 90:
        raise AssertionError(f"{root} is too long for a socket in it")
    return str(root)
