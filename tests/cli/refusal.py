"""How the program refuses bad input."""


def assert_refused(done, *mentions):
    """Exit 2, nothing on stdout and one line on stderr that mentions each of `mentions`."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == "", done.stdout
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for mention in mentions:
        assert mention in done.stderr
