"""Every command and option that a document names is one of the program's."""

import functools
import re
import shlex
import subprocess

import pytest

from harness.server import BINARY, ROOT, clean_environment

DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md")),
    # What FORMAT names like that are the first lines of files.
    *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name != "FORMAT.md"),
    *sorted((ROOT / "docs/guides").glob("*.md")),
    *sorted((ROOT / "packaging").rglob("*.toml")),
    *sorted((ROOT / "packaging").rglob("*.service")),
]


@functools.cache
def help_of(words):
    """What `coffer WORDS --help` says; none where there is no such command."""
    done = subprocess.run(
        [BINARY, *words, "--help"],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.stdout if done.returncode == 0 else None


@functools.cache
def commands_of(words):
    listed = re.search(r"(?ms)^Commands:\n(.*?)(?:\n\n|\Z)", help_of(words))
    return set(re.findall(r"(?m)^  ([a-z-]+)", listed[1])) if listed else set()


def mentions(text):
    """What stands in code and begins with the program's name."""
    code = re.findall(r"(?s)```\w*\n(.*?)```", text)
    code += re.findall(r"`([^`\n]+)`", re.sub(r"(?s)```.*?```", "", text))
    lines = re.sub(r"\\\n\s*", " ", "\n".join(code)).splitlines()
    for line in lines:
        line = re.sub(r"^\s*[#$]\s+", "", line)
        if found := re.match(r"(?:sudo (?:-u \w+ )?)?coffer (.+)", line):
            yield re.split(r"\s#|[|;>&]", found[1])[0].strip()


def problem(mention):
    """What the program does not know of it."""
    try:
        typed = shlex.split(mention)
    except ValueError:
        return None  # a quotation that goes on elsewhere
    command = ()
    for at, word in enumerate(typed):
        if word in commands_of(command):
            command += (word,)
        elif commands_of(command) and re.fullmatch(r"[a-z][a-z-]+", word):
            # A value of an option that comes before the command's name.
            if at and typed[at - 1].startswith("--"):
                continue
            return f"no command {word!r}"
    unknown = [
        option
        for option in re.findall(r"(?<!\S)(--[a-z][a-z0-9-]*)", " ".join(typed))
        if not re.search(rf"(?m){option}(?![a-z0-9-])", help_of(command))
    ]
    return f"no options {unknown}" if unknown else None


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_document_names_exists(path):
    found = {mention: problem(mention) for mention in mentions(path.read_text())}
    assert not {mention: told for mention, told in found.items() if told}


def test_what_the_program_advises_exists():
    """Commands that stand in its messages."""
    sources = sorted((ROOT / "crates").rglob("src/**/*.rs"))
    text = "\n".join(path.read_text() for path in sources)
    # A string goes on behind a backslash at the end of its line.
    text = re.sub(r"\\\n\s*", "", text)
    advised = re.findall(r"`coffer ([^`\"\n{}<]+)`", text)
    commands = [words for words in advised if words.split()[0] in commands_of(())]
    assert len(commands) > 25, commands
    told = {words: problem(words.rstrip(".,")) for words in commands}
    assert not {words: what for words, what in told.items() if what}


def every_command(words=()):
    yield words
    for word in commands_of(words) - {"help"}:
        yield from every_command((*words, word))


def test_the_examples_of_the_help_exist():
    pages = {words: help_of(words) for words in every_command()}
    text = "\n".join(pages.values())
    lines = re.findall(r"(?m)^  +coffer (.+)$", re.sub(r"\\\n\s*", " ", text))
    commands = [re.split(r"\s#|[|;>&]", line)[0].strip() for line in lines]
    assert len(commands) > len(pages) / 2
    told = {words: problem(words) for words in commands}
    assert not {words: what for words, what in told.items() if what}


def test_the_table_of_acts_is_the_program_s():
    """The kinds by which an auditor searches, and the acts of each."""
    text = (ROOT / "docs/OPERATING.md").read_text()
    table = text.split("| kind | its acts | about |\n")[1].split("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[1:]]
    words = [(re.findall(r"`(.*?)`", kind), re.findall(r"`(.*?)`", acts)) for kind, acts, _ in rows]
    written = [f"{kind}.{act}" for [kind], acts in words for act in acts]
    asked = [BINARY, "audit", "show", "--act", "nonsense"]
    told = subprocess.run(asked, env=clean_environment(), capture_output=True, text=True)
    there = re.search(r"the acts are (.+)", told.stderr)[1].split(", ")
    assert told.returncode == 2 and sorted(written) == sorted(there)


def test_that_this_would_be_noticed():
    assert problem("bucket lst") == "no command 'lst'"
    assert problem("bucket list --jason") == "no options ['--jason']"
    assert problem("bucket list --json") is None
    assert sum(len(list(mentions(path.read_text()))) for path in DOCUMENTS) > 100
