"""The Debian package: what is in it, and what installing and removing it does."""

import gzip
import os
import re
import stat
import subprocess

import harness
from harness import E2eTest, offline

CONFIG = os.environ.get("FUSE_CPACK_CONFIG") or harness.ROOT / "build/release/CPackConfig.cmake"


@offline
class PackageTest(E2eTest):
    def setUp(self):
        super().setUp()
        self.work = self.world.root / "work"
        # As in the package that is published but for how it is compressed, which takes time.
        self.run_tool(os.environ.get("FUSE_CPACK") or "cpack", "--config", CONFIG, "-B", self.work,
                      "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip")
        self.package, = self.work.glob("fuse-gpu_*_amd64.deb")

    def run_tool(self, *words, env=None):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                              env={**os.environ, **(env or {})}, check=False)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def test_contents(self):
        """the debian package has the executable, its manual and its units where they belong"""
        root = self.work / "root"
        self.run_tool("dpkg-deb", "-x", self.package, root)
        for line in self.run_tool("dpkg-deb", "-c", self.package).splitlines():
            mode, owner = line.split()[:2]
            runs = "/usr/bin/" in line or mode.startswith("d")
            self.assertEqual(owner, "root/root", line)
            self.assertEqual(mode[1:], "rwxr-xr-x" if runs else "rw-r--r--", line)
        self.assertEqual((root / "usr/bin/fuse").read_bytes(),
                         harness.pathlib.Path(harness.FUSE).read_bytes())
        names = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
        doc = "usr/share/doc/fuse-gpu"
        wanted = {"usr/bin/qemu-vfio-bind.sh", "usr/bin/qemu-mig-setup.sh",
                  "usr/share/bash-completion/completions/fuse",
                  "usr/share/zsh/vendor-completions/_fuse",
                  "usr/share/fish/vendor_completions.d/fuse.fish",
                  f"{doc}/copyright", f"{doc}/changelog.Debian.gz",
                  f"{doc}/examples/agent.env.example",
                  f"{doc}/examples/orchestrator.env.example",
                  "usr/share/man/man1/fuse.1.gz", "usr/share/man/man5/Fusefile.5.gz",
                  "usr/share/man/man8/fuse-agent-serve.8.gz"}
        self.assertLessEqual(wanted, names)
        self.assertFalse([name for name in names if "/man/" in name and not name.endswith(".gz")])
        for service in ("agent", "orchestrator"):
            unit = (root / f"usr/lib/systemd/system/fuse-{service}.service").read_text()
            self.assertRegex(unit, rf"(?m)^ExecStart=/usr/bin/fuse {service} serve")
            self.assertNotIn("/usr/local", unit)

    def test_control(self):
        """the debian package names its version, its sums and what it cannot stand beside"""
        control = self.work / "control"
        self.run_tool("dpkg-deb", "-e", self.package, control)
        fields = dict(re.findall(r"^(\S+): (.*)$", (control / "control").read_text(),
                                 re.MULTILINE))
        version = self.world.fuse("version").text.split()[1]
        self.assertEqual(fields["Version"], f"{version}-1")
        self.assertEqual(fields["Conflicts"], "fuse-emulator-common")
        self.assertIn("qemu-system-x86", fields["Recommends"])
        root = self.work / "root"
        self.run_tool("dpkg-deb", "-x", self.package, root)
        with gzip.open(root / "usr/share/doc/fuse-gpu/changelog.Debian.gz", "rt") as changelog:
            self.assertTrue(changelog.readline().startswith(f"fuse-gpu ({version}-1)"))
        sums = (control / "md5sums").read_text().splitlines()
        self.assertEqual(len(sums), sum(path.is_file() for path in root.rglob("*")))
        for script in ("postinst", "prerm", "postrm"):
            self.assertEqual(stat.S_IMODE((control / script).stat().st_mode), 0o755, script)

    def dpkg(self, root, *words):
        """dpkg on a machine that is nothing but a folder, as root or as if root."""
        as_root = [] if os.geteuid() == 0 else ["fakeroot", "--"]
        return self.run_tool(*as_root, "dpkg", f"--root={root}", "--force-depends",
                             "--force-script-chrootless", "--force-not-root", *words,
                             env={"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"})

    def test_install(self):
        """installing the debian package makes QEMU's user, and a purge leaves nothing but data"""
        root = self.work / "machine"
        for folder in ("etc/fuse", "var/lib/dpkg/updates", "var/lib/dpkg/info", "var/lib/fuse"):
            (root / folder).mkdir(parents=True)
        for name in ("status", "available"):
            (root / "var/lib/dpkg" / name).touch()
        passwd, group = "root:x:0:0::/root:/bin/sh\n", "root:x:0:\n"
        (root / "etc/passwd").write_text(passwd)
        (root / "etc/group").write_text(group)
        (root / "etc/shadow").write_text("root:*:19000::::::\n")
        (root / "var/lib/fuse/disk").touch()
        (root / "etc/fuse/agent.env").touch()

        self.dpkg(root, "--install", self.package)
        self.assertRegex((root / "etc/passwd").read_text(),
                         r"(?m)^fuse-qemu:x:\d+:\d+:.*:/nonexistent:/usr/sbin/nologin$")
        self.assertFalse(list((root / "etc").rglob("*.service")), "a unit was enabled")
        self.dpkg(root, "--install", self.package)
        self.assertEqual((root / "etc/passwd").read_text().count("fuse-qemu:"), 1)

        self.dpkg(root, "--remove", "fuse-gpu")
        self.assertIn("fuse-qemu:", (root / "etc/passwd").read_text())
        self.dpkg(root, "--purge", "fuse-gpu")
        self.assertEqual((root / "etc/passwd").read_text(), passwd)
        self.assertEqual((root / "etc/group").read_text(), group)
        left = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
        left = {name for name in left
                if not re.match(r"var/(lib/dpkg|log)/|etc/(passwd|group|shadow|subuid|subgid)", name)}
        self.assertEqual(left, {"var/lib/fuse/disk", "etc/fuse/agent.env"})


if __name__ == "__main__":
    harness.main()
