"""What the pages name is there: commands, flags, metrics, variables, routes, codes, links."""

import functools
import json
import re
import subprocess

import simulated
import harness
import pages
from harness import E2eTest, offline
from pages import ROOT

TROUBLE = ROOT / "docs/troubleshooting.md"
OPERATIONS = ROOT / "docs/operations.md"
MANUAL = ROOT / "tests/docs/manual.txt"
DASHBOARD = ROOT / "docs/grafana.json"


@functools.cache
def sources():
    """The program's sources, with neighbouring literals put together as the compiler does."""
    texts = [path.read_text() for room in ("base", "cmd", "fusefile", "guest", "hostmode", "net",
                                           "orchestrator", "remote")
             for pattern in ("*.cpp", "*.h") for path in sorted((ROOT / room).rglob(pattern))]
    return re.sub(r'"\s*\n\s*"', "", "\n".join(texts)).replace('\\"', '"')


@functools.cache
def whole_tree():
    """Every file of the tree that is neither a page nor a test."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    texts = []
    for name in listed.stdout.decode().split("\0"):
        path = ROOT / name
        of_pages = name.startswith(("docs/", "tests/", "README.md"))
        if not of_pages and path.is_file():
            texts.append(path.read_text(errors="ignore"))
    return "\n".join(texts)


class Help:
    """What `fuse WORDS --help` says."""

    def __init__(self, words):
        self.words = words
        text = subprocess.run([harness.FUSE, *words, "--help"], capture_output=True, text=True,
                              check=True).stdout
        parts = text.split("\nSubcommands:\n")
        self.flags, self.with_value = set(), set()
        for line in re.findall(r"^  (-\S+(?: [A-Z[]\S*)?)", parts[0], re.MULTILINE):
            names, _, value = line.partition(" ")
            self.flags |= set(names.split(","))
            if value:
                self.with_value |= set(names.split(","))
        self.commands = {}
        for names in re.findall(r"^  ([a-z][a-z, -]*[a-z])(?:  |$)", parts[1] if parts[1:] else "",
                                re.MULTILINE):
            for name in names.split(", "):
                self.commands[name] = names.split(", ")[0]


@functools.cache
def help_of(*words):
    return Help(words)


def leaves(words=()):
    """Every command that has none below it."""
    below = dict.fromkeys(help_of(*words).commands.values())
    if not below:
        yield words
    for name in below:
        yield from leaves((*words, name))


def problem_with(words):
    """What of a command line does not exist; its path of commands."""
    path, position, skip = (), False, False
    for word in words:
        word = word.strip("[]")
        if word in ("--", ""):
            break
        here = help_of(*path)
        if skip:
            skip = False
        elif word.startswith("-") and word != "-":
            flag = word.partition("=")[0]
            if flag not in here.flags | help_of().flags:
                return f"no flag {flag} of fuse {' '.join(path)}", path
            skip = "=" not in word and flag in here.with_value | help_of().with_value
        elif not position and word in here.commands:
            path = (*path, here.commands[word])
        elif here.commands and not re.match(r"[A-Z.]", word):
            return f"no command {word!r} of fuse {' '.join(path)}", path
        else:
            position = True
    return None, path


@offline
class NamesTest(E2eTest):
    def check(self, wrong):
        self.assertEqual(wrong, [], "\n".join(map(str, wrong)))

    def test_marks(self):
        """every fenced block of the pages is marked, and no command hides in a plain text"""
        hidden = [block.name for block in pages.all_blocks() if block.kind == ""
                  for line in block.text.splitlines() if re.match(r"\s*(\$ )?fuse [a-z]", line)]
        self.check(hidden)

    def test_manual_list(self):
        """every block that is not run is listed with the reason"""
        listed = []
        for number, line in enumerate(MANUAL.read_text().splitlines(), 1):
            if not line or line.startswith("#"):
                continue
            page, first, reason = (line.split(" | ") + ["", ""])[:3]
            self.assertTrue(page and first and reason, f"{MANUAL}:{number}")
            listed.append((page, first))
        there = [(block.page, block.first) for block in pages.all_blocks()
                 if block.kind == "manual"]
        self.assertEqual(sorted(there), sorted(listed))

    def test_links(self):
        """every link and anchor of the pages leads somewhere, and every page is linked"""
        wrong, linked = [], set()
        for page in pages.PAGES:
            for link in pages.links_in(page):
                if link.startswith("https://"):
                    continue
                name, _, anchor = link.partition("#")
                target = (page.parent / name).resolve() if name else page
                if page.name == "README.md":
                    linked.add(target)
                if not target.exists():
                    wrong.append(f"{pages.name_of(page)}: {link}")
                elif anchor and anchor not in pages.anchors_of(target):
                    wrong.append(f"{pages.name_of(page)}: no heading for {link}")
        self.check(wrong)
        self.assertIn(ROOT / "docs/README.md", linked)
        missing = set(pages.PAGES) | {DASHBOARD}
        self.check([pages.name_of(page) for page in missing - linked if page != pages.PAGES[0]])

    def test_commands(self):
        """every command and flag that a page names is in the help of fuse, and the reverse"""
        wrong, named = [], set()
        flags = set().union(*(help_of(*words).flags for words in leaves()), help_of().flags)
        for page in pages.PAGES:
            where = pages.name_of(page)
            spans = [span for span in pages.spans_in(page) if re.match(r"fuse\s", span)]
            blocks = [block.text for block in pages.blocks_in(page) if block.language == "sh"]
            for text in spans + blocks:
                for words in pages.commands_in(text):
                    problem, path = problem_with(words)
                    named.add(path)
                    if problem:
                        wrong.append(f"{where}: {text.strip()}: {problem}")
            for span in pages.spans_in(page):
                flag = re.match(r"--[a-z][a-z-]*", span)
                if flag and flag.group() not in flags:
                    wrong.append(f"{where}: no flag {flag.group()}")
        self.check(wrong)
        self.check([f"no page names fuse {' '.join(words)}" for words in set(leaves()) - named])

    def test_metrics(self):
        """every metric of pages, alerts and dashboard is printed, and every one printed is told"""
        fleet = simulated.Fleet(self)
        agent = fleet.read("/metrics", fleet.agent_url, fleet.agent_token)
        printed = dict(re.findall(r"^# TYPE (\S+) (\S+)$", fleet.read("/metrics") + agent,
                                  re.MULTILINE))
        names = set(printed)
        for name, kind in printed.items():
            if kind == "histogram":
                names |= {name + end for end in ("_bucket", "_sum", "_count")}
        self.assertGreater(len(names), 20)
        wrong = []
        for page in [*pages.PAGES, DASHBOARD]:
            for name in re.findall(r"\b(?:orchestrator|fuse_agent)_[a-z0-9_]*[a-z0-9]\b(?!_)",
                                   page.read_text()):
                if name not in names and f"`{name}_`" not in page.read_text():
                    wrong.append(f"{pages.name_of(page)}: {name}")
        self.check(wrong)
        rows = pages.table_rows(OPERATIONS, "Metrics") + pages.table_rows(OPERATIONS, "Metrics", 1)
        self.assertEqual({row[0].strip("`"): row[1] for row in rows}, printed)

    def test_dashboard(self):
        """the dashboard's panels have queries and places of their own"""
        panels = json.loads(DASHBOARD.read_text())["panels"]
        self.assertGreater(len(panels), 5)
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
        self.assertEqual(len(set(places)), len(panels))
        for panel in panels:
            for target in panel["targets"]:
                self.assertRegex(target["expr"], "orchestrator_|fuse_agent_")
                self.assertEqual(target["expr"].count("("), target["expr"].count(")"))

    def test_exit_codes(self):
        """the table of exit codes has those of the code"""
        text = (ROOT / "cmd/exit_codes.h").read_text()
        codes = re.findall(r"^  \w+ = (\d+),", text, re.MULTILINE)
        self.assertGreater(len(codes), 10)
        self.assertEqual([row[0] for row in pages.table_rows(TROUBLE, "Exit codes")], codes)

    def test_variables(self):
        """every variable of the environment that a page names is read by something"""
        wrong = []
        for page in pages.PAGES:
            for name in set(re.findall(r"\b[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+\b", page.read_text())):
                if not re.search(rf"\b{name}\b", whole_tree()):
                    wrong.append(f"{pages.name_of(page)}: {name}")
        self.check(wrong)

    def test_placement_codes(self):
        """the codes of explain are those of the scheduler"""
        text = (ROOT / "orchestrator/scheduler.cpp").read_text()
        text += (ROOT / "orchestrator/gpu_choice.cpp").read_text()
        codes = set(re.findall(r'PlacementReason\{\s*"([a-z-]+)"', text))
        codes |= set(re.findall(r'short_of\("([a-z-]+)"', text))
        codes |= set(re.findall(r'return \{"(mig-[a-z]+)"', text))
        codes |= set(re.findall(r'\{"([a-z]+)", "[^"]*", all\.', text))
        self.assertGreater(len(codes), 15)
        rows = pages.table_rows(TROUBLE, "Codes of fuse explain")
        self.assertEqual({row[0].strip("`") for row in rows}, codes)

    def test_job_ends(self):
        """the reasons of a job's end are those of the code"""
        rows = pages.table_rows(TROUBLE, "How a job ended")
        self.assertEqual(len(rows), 5)
        for row in rows:
            self.assertIn(row[0].replace("`", '"'), sources())

    def test_doctor(self):
        """the findings of the doctor are those of the code"""
        text = (ROOT / "hostmode/doctor.cpp").read_text()
        names = set(re.findall(r'\b(?:pass|problem|note)\((?:cat\()?"([a-z-]+) ?"', text))
        names |= set(re.findall(r'name = cat\("([a-z]+) "', text))
        self.assertGreater(len(names), 10)
        rows = pages.table_rows(TROUBLE, "Findings of fuse agent doctor")
        self.assertEqual({row[0].strip("`") for row in rows}, names)

    def test_texts(self):
        """texts of errors and logs that the pages quote are in the program"""
        rows = pages.table_rows(TROUBLE, "Texts")
        rows += pages.table_rows(OPERATIONS, "Lines to look for")
        self.assertGreater(len(rows), 20)
        wrong = []
        for row in rows:
            text = re.sub(r"\b[NXM]\b|'X'|\.\.\.", "\0", row[0].strip("`"))
            for part in text.split("\0"):
                if part.strip(" ()'") and part.strip() not in sources():
                    wrong.append(f"{row[0]}: {part!r}")
        self.check(wrong)

    def test_routes(self):
        """the routes of the pages are those of the program"""
        def routes(folder):
            return set(re.findall(r'\{"(GET|POST|PUT|DELETE)", "([^"]+)", "([a-z-]*)"',
                                  "".join(path.read_text() for path in
                                          sorted((ROOT / folder).glob("http*.cpp")))))
        told, before = set(), ""
        for row in pages.table_rows(ROOT / "docs/wire.md", "Routes"):
            for span in re.findall(r"`([^`]+)`", row[0]):
                span = before.partition("?")[0] + span if span.startswith("?") else span
                before = span
                said = re.fullmatch(r"(\w+) ([^?]+)(?:\?action=([a-z-]+))?", span)
                told.add((said[1], said[2], said[3] or ""))
        self.assertEqual(told, routes("orchestrator"))
        agent = " ".join(cell for row in pages.table_rows(ROOT / "docs/host-agent.md", "The wire")
                         for cell in row)
        served = routes("hostmode")
        self.assertGreater(len(served), 15)
        for _, path, action in served:
            self.assertIn(action or path.rpartition("/{id}")[2] or "/v1/vm/ID", agent)

    def test_fusefiles(self):
        """every Fusefile of the pages is valid, and so is every part of one"""
        for block in pages.all_blocks():
            if block.kind not in ("fusefile", "part"):
                continue
            text = block.text
            if block.kind == "part":
                text = "version: 1\nrun: \"true\"\n" + text
            for name in re.findall(r"from: ([\w.]+)", text):
                self.world.write(name, "")
            done = self.world.fuse("validate", self.world.write("Fusefile", text))
            self.assertEqual(done.code, 0, f"{block.name}: {done}")


if __name__ == "__main__":
    harness.main()
