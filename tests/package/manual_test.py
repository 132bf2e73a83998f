"""The manual that fuse writes of itself."""

import re
import subprocess
import sys

import harness
from harness import E2eTest, offline

sys.path.insert(0, str(harness.ROOT / "tests/docs"))
from names_test import help_of


def tree(words=()):
    """The words of every command that the help shows, the whole first."""
    yield words
    for name in dict.fromkeys(help_of(*words).commands.values()):
        yield from tree((*words, name))


@offline
class ManualTest(E2eTest):
    def setUp(self):
        super().setUp()
        self.folder = self.world.root / "work/man"
        self.expect(self.world.fuse("man-pages", self.folder))
        self.pages = {path.name: path.read_text() for path in sorted(self.folder.glob("man?/*"))}

    def page_of(self, words):
        section = 8 if words[:1] in (("agent",), ("orchestrator",)) else 1
        return f"{'-'.join(('fuse', *words))}.{section}"

    def test_clean(self):
        """roff has nothing to warn of in any page of the manual"""
        self.assertGreater(len(self.pages), 25)
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z",
                               *sorted(self.folder.glob("man?/*"))],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name, text in self.pages.items():
            headings = re.findall(r'^\.SH "(.*)"$', text, re.MULTILINE)
            wanted = ["NAME", "DESCRIPTION", "SEE ALSO"]
            if name != "Fusefile.5":
                wanted += ["SYNOPSIS", "OPTIONS", "EXIT STATUS"]
            self.assertLessEqual(set(wanted), set(headings), name)
            for link, section in re.findall(r"^\.BR (\S+) \((\d)\)", text, re.MULTILINE):
                self.assertIn(link.replace("\\-", "-") + "." + section, self.pages, name)

    def test_complete(self):
        """the manual names every command, alias and option, and every key of a Fusefile"""
        whole = self.pages["fuse.1"].replace("\\-", "-")
        for words in tree():
            here = help_of(*words)
            for name in here.commands:
                self.assertIn(f"{name}\\fR", whole)
            own = here.flags - {"-h", "--help"}
            page = self.pages.get(self.page_of(words), "").replace("\\-", "-")
            for flag in own:
                self.assertIn(f"\\fB{flag}\\fR", page, words)
        keys = re.findall(r"^\| `(\w+)`", (harness.ROOT / "docs/fusefile-keys.md").read_text(),
                          re.MULTILINE)
        self.assertGreater(len(keys), 40)
        for key in keys:
            self.assertIn(f"\n\\fB{key}\\fR (", self.pages["Fusefile.5"])

    def test_settings(self):
        """the manual of the two services has their variables and their files"""
        for service in ("agent", "orchestrator"):
            page = self.pages[f"fuse-{service}-serve.8"].replace("\\-", "-")
            example = (harness.ROOT / f"packaging/{service}.env.example").read_text()
            names = re.findall(r"^#?([A-Z_]+)=", example, re.MULTILINE)
            self.assertGreater(len(names), 5)
            for name in [*names, f"/etc/fuse/{service}.env"]:
                self.assertIn(f"\\fB{name}\\fR", page)


if __name__ == "__main__":
    harness.main()
