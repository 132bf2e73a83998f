#!/usr/bin/env python3
"""Asks a Catch2 executable for its test cases and writes them down for ctest.

Catch2's own script loses names with semicolons and backslashes; names here are
sentences and may hold anything but a line break.
"""

import argparse
import os
import re
import subprocess
import sys


def names_of(executable, catch, directory):
    how = ["--list-test-names-only"] if catch < 3 else ["--list-tests", "--verbosity", "quiet"]
    # A sanitizer's leak check has nothing to say about listing names, and does
    # not work where ptrace is in use.
    environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")
    done = subprocess.run([executable, *how], capture_output=True, text=True, cwd=directory,
                          env=environment, timeout=120, check=False)
    # Version 2 exits with the number of tests.
    if done.returncode < 0 or (catch >= 3 and done.returncode != 0):
        sys.exit(f"{executable} cannot list its tests ({done.returncode}):\n{done.stderr}")
    names = [line for line in done.stdout.splitlines() if line.strip()]
    if not names:
        sys.exit(f"{executable} holds no tests")
    # Version 2 quotes names that look like a file of names.
    return [n[1:-1] if n.startswith('"#') and n.endswith('"') else n for n in names]


def spec_of(name):
    """The name as Catch2's command line wants it, which splits at commas and
    takes brackets for tags."""
    if name[0] in "-~*":
        sys.exit(f"a test's name cannot begin with {name[0]}, which Catch2 takes for an operator: {name}")
    return re.sub(r'([\\,\[\]"])', r"\\\1", name)


def bracketed(text):
    equals = "="
    while f"]{equals}]" in text or text.endswith(f"]{equals}"):
        equals += "="
    return f"[{equals}[{text}]{equals}]"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--catch", type=int, required=True)
    parser.add_argument("--room", required=True)
    parser.add_argument("--timeout", type=int, required=True)
    parser.add_argument("--directory", required=True)
    parser.add_argument("executable")
    parser.add_argument("output")
    args = parser.parse_args()

    # The exit code of version 2 is the number of failures, which may be 4 too.
    skipped = "" if args.catch < 3 else " SKIP_RETURN_CODE 4"
    lines = []
    for name in names_of(args.executable, args.catch, args.directory):
        test = bracketed(f"{args.room}: {name}")
        lines.append(f"add_test({test} {bracketed(args.executable)} {bracketed(spec_of(name))})")
        lines.append(
            f"set_tests_properties({test} PROPERTIES LABELS [=[unit;{args.room}]=]"
            f" TIMEOUT {args.timeout} WORKING_DIRECTORY {bracketed(args.directory)}"
            f" SKIP_REGULAR_EXPRESSION [=[(^|\n)SKIPPED: ]=]{skipped})"
        )
    partial = args.output + ".part"
    with open(partial, "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")
    os.replace(partial, args.output)


main()
