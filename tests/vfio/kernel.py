"""The kernel of the lab: a Debian one, downloaded and unpacked but not installed."""

import os
import pathlib
import re
import shutil
import subprocess


class CannotHave(Exception):
    """Something of the lab cannot be had on this machine; the text says why."""


def run(argv, **options):
    """Runs a command to its end; its output, or CannotHave with the last it said."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, text=True, **options)
    except FileNotFoundError as missing:
        raise CannotHave(f"{argv[0]} is not installed") from missing
    if done.returncode != 0:
        said = done.stdout.strip().splitlines() or ["it said nothing"]
        raise CannotHave(f"{' '.join(map(str, argv[:3]))} failed: {said[-1]}")
    return done.stdout


def package_behind(metapackage):
    """The package that a metapackage stands for, such as linux-image-6.1.0-57-amd64."""
    stem = metapackage.removesuffix("amd64")
    found = re.search(rf"^Depends:.*?({stem}[^ ,]*-amd64)", run(
        ["apt-cache", "show", "--no-all-versions", metapackage]), re.MULTILINE)
    if not found:
        raise CannotHave(f"{metapackage} depends on no {stem}* package")
    return found.group(1)


def unpack(packages, root):
    """Downloads packages and unpacks them below `root`, once."""
    done = root / "complete"
    if done.exists():
        return
    shutil.rmtree(root, ignore_errors=True)
    (root / "debs").mkdir(parents=True)
    run(["apt-get", "-q", "-o", "Acquire::Retries=3", "download", *packages], cwd=root / "debs")
    for package in sorted((root / "debs").glob("*.deb")):
        run(["dpkg-deb", "-x", package, root])
    shutil.rmtree(root / "debs")
    done.touch()


class Kernel:
    """A kernel below `root`, with its modules."""

    def __init__(self, root):
        self.root = root
        self.image = next((root / "boot").glob("vmlinuz-*"))
        self.version = self.image.name.removeprefix("vmlinuz-")
        tree = next(path for path in (root / "lib/modules", root / "usr/lib/modules")
                    if path.exists())
        self.modules = {re.sub(r"\.ko.*", "", path.name).replace("-", "_"): path
                        for path in tree.rglob("*.ko*")}

    def with_needs(self, wanted):
        """The files of these modules and of what they need, in the order to load them."""
        files = {}

        def add(name):
            path = self.modules.get(name)
            if path is None or path in files:
                return  # built in, or there already
            for need in depends_of(path):
                add(need)
            files[path] = True

        for name in wanted:
            add(name.replace("-", "_"))
        return list(files)


def depends_of(path):
    """The modules that one says it needs."""
    found = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
    names = found.group(1).decode().split(",") if found else []
    return [name.replace("-", "_") for name in names if name]


def fetch_kernel(cache):
    """The kernel that Debian's metapackage stands for now; the one before is removed."""
    try:
        package = package_behind("linux-image-amd64")
    except CannotHave:
        # A machine whose lists of packages were removed, as containers' are.
        run(["apt-get", "-q", "update"])
        package = package_behind("linux-image-amd64")
    remove_others(cache, package)
    unpack([package], cache / package)
    return Kernel(cache / package)


def fetch_headers(cache, version):
    """The folder in which modules of that kernel are built."""
    flavour = f"linux-headers-{version}"
    remove_others(cache, flavour)
    packages = [flavour, f"linux-headers-{version.removesuffix('-amd64')}-common"]
    for line in run(["apt-cache", "depends", flavour]).splitlines():
        name = line.split()[-1]
        if re.match(r"linux-(kbuild|compiler)-", name):
            packages.append(name)
    root = cache / flavour
    unpack(packages, root)
    build = root / "usr/src" / flavour
    makefile = build / "Makefile"
    # Where the headers would have been installed.
    makefile.write_text(makefile.read_text().replace("include /usr/src/",
                                                     f"include {root}/usr/src/"))
    return build


def remove_others(cache, kept):
    """Removes what was unpacked of another version of the same package."""
    stem = re.sub(r"[0-9].*", "", kept)
    for path in cache.glob(f"{stem}*"):
        if path.name != kept:
            shutil.rmtree(path)


def build_module(headers, source, into):
    """Builds the module of one C file; its path."""
    module = into / f"{source.stem}.ko"
    if module.exists() and module.stat().st_mtime > source.stat().st_mtime and \
            (into / "for").read_text() == str(headers):
        return module
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    shutil.copy(source, into)
    (into / "Kbuild").write_text(f"obj-m += {source.stem}.o\n")
    run(["make", "-s", "-C", headers, f"M={into}", "modules"],
        env={"PATH": os.environ["PATH"], "LANG": "C"})
    run(["strip", "-d", module])
    (into / "for").write_text(str(headers))
    return pathlib.Path(module)
