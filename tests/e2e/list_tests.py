#!/usr/bin/env python3
"""Prints a line for every end-to-end test of files in this folder, for fuse_e2e_tests:

    FILE|CLASS.METHOD|NAME|SECONDS|serial or parallel|LABELS

NAME is the first line of the method's docstring, LABELS are those of ctest with commas
between them.
"""

import importlib
import inspect
import os
import pathlib
import sys
import unittest


def labels(case, function):
    """A test that starts VMs is "vm"; one that is left out of `make test` is "long"."""
    offline = getattr(case, "offline", False)
    return ["e2e", *([] if offline else ["vm"]), *(["long"] if hasattr(function, "long") else [])]


def main():
    sys.path[:0] = [os.getcwd(), str(pathlib.Path(__file__).resolve().parent)]
    names = set()
    for file in sys.argv[1:]:
        module = importlib.import_module(pathlib.Path(file).stem)
        for _, case in inspect.getmembers(module, inspect.isclass):
            if not issubclass(case, unittest.TestCase) or case.__module__ != module.__name__:
                continue
            for method in unittest.TestLoader().getTestCaseNames(case):
                function = getattr(case, method)
                name = (function.__doc__ or "").strip().split("\n")[0].rstrip(".")
                if not name or name in names or "|" in name or ";" in name:
                    sys.exit(f"{file}: {method} needs a docstring of its own as its name")
                names.add(name)
                print(file, f"{case.__name__}.{method}", name, getattr(function, "limit", 300),
                      "serial" if getattr(function, "serial", False) else "parallel",
                      ",".join(labels(case, function)), sep="|")


main()
