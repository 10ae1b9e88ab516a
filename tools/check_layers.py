#!/usr/bin/env python3
"""Checks that the folders of Ballast know only what they may: the first step of CI, and of `make lint`.

Usage: tools/check_layers.py [ROOT]    one violation a line as FILE:LINE: WHAT; exit 1 if there is any.

A folder of ballast/ may include itself and the folders ALLOWED names; what lies outside ballast/ may include anything,
and nothing includes it. Libraries are bound to folders the same way. Reasons are in docs/decisions/.
"""

import re
import subprocess
import sys
from pathlib import Path

VALUES = ["base", "spec", "ir"]
ALLOWED = {
    "base": [],
    "spec": ["base"],
    "ir": ["base", "spec"],
    "io": VALUES,
    "solver": ["base"],
    "workload": VALUES,
    "schedule": VALUES,
    "calibrate": VALUES,
    "diagnose": VALUES,
    "cost": VALUES,
    "packing": [*VALUES, "cost", "solver"],
    "sharding": [*VALUES, "cost", "solver"],
    "simulate": [*VALUES, "cost"],
    "planner": [*VALUES, "solver", "workload", "schedule", "calibrate", "diagnose", "cost", "packing", "sharding",
                "simulate"],
}
# The runtime executes plans from anyone: it reads values and files, and knows nothing of how a plan was chosen.
RUNTIME_READS = [*VALUES, "io", "workload"]
for folder, runtime_folders in {
    "comm": [],
    "model": [],
    "profiler": ["comm"],
    "attention": ["comm", "profiler"],
    "launch": ["comm", "profiler"],
    "parallel": ["comm", "model", "attention", "profiler"],
    "checkpoint": ["comm", "model"],
    "train": ["comm", "model", "profiler", "attention", "launch", "parallel", "checkpoint"],
    "microbenchmarks": ["comm", "model", "profiler", "attention", "launch", "train"],
}.items():
    ALLOWED[f"runtime/{folder}"] = RUNTIME_READS + [f"runtime/{name}" for name in runtime_folders]

# Library (first part of an include's path) -> folders that may include it. Tests, benchmarks and examples are free.
LIBRARY_FOLDERS = {
    "nlohmann": ["ballast/io", "cli"],
    "toml++": ["ballast/io"],
    "CLI": ["cli"],
    "coin": ["ballast/solver"],
    **dict.fromkeys(["torch", "ATen", "c10", "c10d", "caffe2", "gloo"], ["ballast/runtime", "cli"]),
    **dict.fromkeys(["gtest", "gmock", "rapidcheck", "rapidcheck.h", "benchmark"], []),
}
CHECKED_ROOTS = ("ballast", "cli")

CPP = {".h", ".cpp"}
MAX_HEADER_LINES = 220
MAX_FILE_LINES = 400
SAYS_NOTHING = {"util", "utils", "helper", "helpers", "common", "manager", "misc", "handler", "handlers"}
# Paths that exist on one machine only; written in pieces so that this file passes its own check.
MACHINE_PATH = re.compile(r"(?<![\w.])(?:" + "|".join(["/wo" + r"rk/\w", r"\.\./sha" + r"red\b", "/tm" + r"p/\w"]) + ")")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CMAKE_FOLDER = re.compile(r"ballast_folder\(\s*([\w/]+)\s+DEPS\s+([^)]*?)(?:\s+LINK\b[^)]*)?\)")


def layer_of(path):
    """The key of ALLOWED that a path under ballast/ belongs to; its folder where that is no layer."""
    parts = Path(path).parts[1:-1]
    return "/".join(parts[:2] if parts[:1] == ("runtime",) else parts[:1])


def check_include(path, kind, target, exists):
    """Why the file at `path` may not include `target`; nothing if it may."""
    root = Path(path).parts[0]
    if kind == '"':
        if not exists(target):
            yield f'"{target}" is no file of this repository; write the path from its root'
        elif root == "ballast" and not target.startswith("ballast/"):
            yield f'ballast/ may not include "{target}"'
        elif root == "ballast":
            mine, theirs = layer_of(path), layer_of(target)
            if mine in ALLOWED and theirs != mine and theirs not in ALLOWED[mine]:
                yield f"{mine} may not include {theirs}; it may include {' '.join(ALLOWED[mine]) or 'nothing'}"
    elif root in CHECKED_ROOTS:
        library = target.split("/")[0]
        folders = LIBRARY_FOLDERS.get(library)
        if folders is not None and not any(Path(path).is_relative_to(folder) for folder in folders):
            yield f"<{target}> belongs to {' and '.join(folders) or 'tests and benchmarks'} only"


def check_cmake(text):
    """Link dependencies of CMakeLists.txt that the includes would not be allowed."""
    for match in CMAKE_FOLDER.finditer(text):
        folder, deps = match[1], match[2].split()
        line = text.count("\n", 0, match.start()) + 1
        for dep in deps:
            if folder in ALLOWED and dep not in ALLOWED[folder]:
                yield line, f"{folder} may not link {dep}"


def check_file(root, path, exists):
    """Violations of one file as (line, what)."""
    for part in Path(path).parts:
        said = SAYS_NOTHING.intersection(re.split(r"[_\-.]", part.lower()))
        if said:
            yield 1, f"the name '{part}' says nothing: name what it is instead of '{said.pop()}'"
    try:
        text = (root / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if found := MACHINE_PATH.search(line):
            yield number, f"'{found[0]}...' exists on one machine only"
    suffix = Path(path).suffix
    limit = MAX_HEADER_LINES if suffix == ".h" else MAX_FILE_LINES
    if suffix in CPP | {".py", ".sh", ".cmake"} and len(lines) > limit:
        yield limit + 1, f"{len(lines)} lines, over the {limit} that a file of this kind may have"
    if path == "CMakeLists.txt":
        yield from check_cmake(text)
    if suffix in CPP:
        if path.startswith("ballast/") and layer_of(path) not in ALLOWED:
            yield 1, f"ballast/{layer_of(path)} is no known folder; add it to ALLOWED and to docs/decisions/"
        for number, line in enumerate(lines, 1):
            if include := INCLUDE.match(line):
                for what in check_include(path, include[1], include[2], exists):
                    yield number, what


def check(root, paths):
    """All violations of the files at `paths` (relative to `root`), one string each."""
    known = set(paths)
    return [
        f"{path}:{line}: {what}"
        for path in sorted(known)
        for line, what in check_file(root, path, known.__contains__)
    ]


def repository_files(root):
    listing = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True,
    ).stdout
    return [path for path in listing.split("\0") if path and (root / path).is_file()]


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    paths = repository_files(root)
    violations = check(root, paths)
    for violation in violations:
        print(violation, file=sys.stderr)
    print(f"check_layers: {len(paths)} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
