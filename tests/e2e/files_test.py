"""Fusefiles without a machine: validate, compile, version, and what is refused."""

import json
import os
import unittest

import harness
from harness import ROOT, E2eTest


@harness.offline
class FilesTest(E2eTest):
    def test_valid(self):
        """a valid file is valid, also offline and from any folder"""
        done = self.expect(self.world.fuse("validate", ROOT / "examples/train/Fusefile"))
        done = self.expect(self.world.fuse("validate", ROOT / "examples/train/Fusefile",
                                           "-o", "json"))
        report = done.json()
        self.assertTrue(report["valid"])
        self.assertEqual(report["errors"], [])
        self.assertEqual(report["required_secrets"], ["DATA_KEY"])
        self.assertIsNone(self.world.background_pid())

    def test_problems(self):
        """validate names every problem with its place and exits with 1"""
        path = self.world.write("bad.yaml", "version: 2\nresources:\n  gpu: -1\n  gpu_knid: a100\n")
        done = self.expect(self.world.fuse("validate", path), 1)
        self.assertIn(f"{path}:1:", done.text)
        self.assertIn("version: must be 1", done.text)
        self.assertIn(f"{path}:4:", done.text)
        self.assertIn("gpu_kind", done.text)
        report = self.expect(self.world.fuse("validate", path, "-o", "json"), 1).json()
        self.assertFalse(report["valid"])
        self.assertEqual({error["line"] for error in report["errors"]}, {1, 3, 4})

    def test_streams(self):
        """off a terminal stdout has a line a problem, and the hints are on stderr"""
        path = self.world.write("bad.yaml", "version: 1\nnam: x\nenv: { LR: 0.1 }\n"
                                            "copy: [{ from: nowhere, to: . }]\n")
        done = self.expect(self.world.fuse("validate", path), 1)
        self.assertEqual(done.text.splitlines(), [
            f'{path}:2:1: nam: field nam not found, did you mean "name"?',
            f"{path}:3:12: env.LR: line 3: cannot unmarshal !!float `0.1` into map",
            f'{path}:4:16: copy[0].from: "nowhere" does not exist'])
        self.assertIn(f"{path}:3:12: hint: write LR: {{value: 0.1}}", done.errors)
        done = self.expect(self.world.fuse("validate", path, "--quiet"), 1)
        self.assertEqual((done.out, done.err), (b"", b""))
        for error in self.expect(self.world.fuse("validate", path, "-o", "json"), 1).json()["errors"]:
            self.assertRegex(error["code"], r"^F\d{3}$")
            self.assertTrue(error["hint"])

    def test_sizes(self):
        """a file of any size comes to an answer"""
        for text in (b"", b",", b"\0", b"\xff", b"a"):
            self.expect(self.world.fuse("validate", self.world.write("small", text)), 1)
        for part in (b"\n", b"a: 1\n", b"- ", b"[", b"\xff"):
            big = self.world.write("big", part * (10_000_000 // len(part)))
            done = self.expect(self.world.fuse("validate", big, "--color", "always"), 1)
            self.expect_says(done, "over the 1048576 byte limit")
            self.assertLess(len(done.out), 1000)

    def test_unreadable(self):
        """a file that cannot be read is wrong usage, not a bad file"""
        self.expect(self.world.fuse("validate", "nowhere.yaml"), 2)
        self.expect(self.world.fuse("validate", self.world.root / "work"), 2)
        done = self.expect(self.world.fuse("validate"), 2)
        self.expect_says(done, "Fusefile", "fusefile.yml")
        self.expect(self.world.fuse("validate", "--no-such-flag"), 2)
        self.expect(self.world.fuse("no-such-command"), 2)

    def test_refused_before_anything_starts(self):
        """up and run refuse a bad file or a missing secret before anything starts"""
        bad = self.world.write("bad.yaml", "version: 1\nnope: 1\n")
        self.expect(self.world.fuse("up", bad), 1)
        self.expect(self.world.fuse("run", bad), 125)
        train = ROOT / "examples/train/Fusefile"
        self.expect_says(self.expect(self.world.fuse("up", train), 1), "DATA_KEY")
        self.expect_says(self.expect(self.world.fuse("run", train), 125), "DATA_KEY")
        self.expect(self.world.fuse("up", train, "--secrets-file", "nowhere"), 2)
        self.expect(self.world.fuse("up", train, "--secret", "DATA_KEY=@nowhere"), 2)
        self.assertIsNone(self.world.background_pid())

    def test_compile(self):
        """compile prints what would be sent, never a secret"""
        done = self.expect(self.world.fuse("compile", ROOT / "examples/train/Fusefile",
                                           "--format", "json"))
        sent = done.json()
        self.assertEqual(sent["task_id"], "train")
        self.assertEqual(sent["spec"]["image"], "base")
        self.assertEqual(sent["spec"]["ram_mb"], 512)
        self.assertEqual(sent["secrets"], {})
        self.assertEqual(sent["required_secrets"], ["DATA_KEY"])
        self.assertTrue(any(path.endswith("train.py") for path in sent["files"]), sent["files"])
        bad = self.world.write("bad.yaml", "version: 1\nrun: 7\nx: 1\n")
        self.expect(self.world.fuse("compile", bad), 1)
        self.expect(self.world.fuse("compile", "nowhere"), 2)

    def test_version(self):
        """version is one line, by command and by flag"""
        lines = {self.expect(self.world.fuse(*words)).text
                 for words in (("-v",), ("--version",))}
        self.assertEqual(len(lines), 1)
        self.assertRegex(lines.pop(), r"^fuse \d+\.\d+\.\d+\n$")
        shown = json.loads(self.expect(self.world.fuse("version", "-o", "json")).out)
        self.assertIn("version", shown)

    def test_nothing_for_help(self):
        """help and offline commands leave no file behind"""
        self.expect(self.world.fuse("--help"))
        self.expect(self.world.fuse("run", "--help"))
        self.expect(self.world.fuse("validate", ROOT / "examples/train/Fusefile"))
        self.assertEqual(os.listdir(self.world.root / "state"), [])
        self.assertEqual(os.listdir(self.world.root / "home"), [])
        self.assertEqual(os.listdir(self.world.root / "config"), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
