"""What every verb of the command line keeps: exit codes, one-line errors, help with a worked example."""

import re
import subprocess

import pytest
from program import PROGRAM
from refusal import assert_refused


def help_of(*verb):
    return subprocess.run([PROGRAM, *verb, "--help"], capture_output=True, text=True).stdout


def subcommands(*verb):
    section = help_of(*verb).partition("Subcommands:\n")[2].partition("\n\n")[0]
    return [line.split()[0] for line in section.splitlines() if re.match(r"  \S", line)]


def verbs():
    """Every verb as a tuple of words; one with verbs of its own stands for those."""
    found = []
    for verb in subcommands():
        nested = subcommands(verb)
        found += [(verb, name) for name in nested] if nested else [(verb,)]
    return found


def options(*verb):
    return [name for name in re.findall(r"(?:^  |,)(--[a-z-]+)", help_of(*verb), re.MULTILINE) if name != "--help"]


every_verb = pytest.mark.parametrize("verb", verbs(), ids=" ".join)


def test_help_lists_the_verbs(ballast):
    done = ballast("--help")
    assert done.returncode == 0
    assert done.stderr == ""
    assert verbs()


def test_version_is_one_line(ballast):
    done = ballast("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"ballast \d+\.\d+\.\d+\n", done.stdout)


def test_no_verb_is_refused_with_the_verbs_there_are(ballast):
    assert_refused(ballast(), *subcommands())


def test_a_word_far_from_every_verb_is_refused_with_the_verbs_there_are(ballast):
    assert_refused(ballast("qqqqqqqqqqqq"), *subcommands())


@every_verb
def test_a_misspelt_verb_is_refused_with_the_nearest(ballast, verb):
    misspelt = [*verb[:-1], verb[-1][:-1] + "x"]
    assert_refused(ballast(*misspelt), misspelt[-1], f"did you mean {verb[-1]}?")


@every_verb
def test_help_has_a_worked_example(ballast, verb):
    done = ballast(*verb, "--help")
    assert done.returncode == 0
    assert done.stderr == ""
    assert re.search(rf"Example.*\n(.*\n)*? *ballast {' '.join(verb)} \S", done.stdout), done.stdout


@every_verb
def test_a_misspelt_option_is_refused_with_the_nearest(ballast, verb):
    name = max(options(*verb), key=len)
    assert_refused(ballast(*verb, name[:-1] + "qq"), name[:-1] + "qq", f"did you mean {name}?")


@every_verb
def test_an_option_far_from_every_other_is_refused_with_those_there_are(ballast, verb):
    assert_refused(ballast(*verb, "--qqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"), *options(*verb))
