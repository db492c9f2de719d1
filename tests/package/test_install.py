"""`make install` and `make uninstall`, into a folder."""

import re

import pytest

from harness.links import dead_links
from harness.programs import run
from harness.server import BINARY, ROOT, clean_environment, coffer


def make(*words):
    command = ["make", "-s", *words, f"BINARY={BINARY}"]
    return run(command, clean_environment(), cwd=ROOT)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    root = tmp_path_factory.mktemp("installed")
    make("install", f"DESTDIR={root}", "PREFIX=/opt/coffer")
    return root


def files(root):
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_all_of_it_is_there(installed):
    prefix = installed / "opt/coffer"
    assert run([prefix / "bin/coffer", "--version"], clean_environment()).startswith("coffer ")
    expected = {
        "etc/coffer/coffer.toml",
        "opt/coffer/bin/coffer",
        "opt/coffer/lib/systemd/system/coffer.service",
        "opt/coffer/lib/sysusers.d/coffer.conf",
        "opt/coffer/share/coffer/monitoring/alerts.yml",
        "opt/coffer/share/bash-completion/completions/coffer",
        "opt/coffer/share/doc/coffer/LICENSE-MIT",
        "opt/coffer/share/doc/coffer/OPERATING.md",
        "opt/coffer/share/fish/vendor_completions.d/coffer.fish",
        "opt/coffer/share/man/man1/coffer.1",
        "opt/coffer/share/man/man1/coffer-level-create.1",
        "opt/coffer/share/zsh/site-functions/_coffer",
    }
    assert expected <= files(installed)
    for path in expected:
        assert (installed / path).stat().st_mode & 0o444 == 0o444, f"{path} is for all to read"
    unit = (prefix / "lib/systemd/system/coffer.service").read_text()
    assert "ExecStart=/opt/coffer/bin/coffer serve --config /etc/coffer/coffer.toml\n" in unit


def test_links_of_documents_lead_to_what_is_there(installed):
    documents = installed / "opt/coffer/share/doc/coffer"
    assert dead_links(documents) == []
    text = (documents / "README.md").read_text()
    assert "](INSTALL.md)" in text and "](guides/first-day.md)" in text, "links are kept"


def test_a_page_for_each_subcommand(installed):
    folder = installed / "opt/coffer/share/man/man1"

    def pages(words):
        told = coffer(*words, "--help").stdout.decode()
        yield "-".join(["coffer", *words])
        commands = told.partition("\nCommands:\n")[2].partition("\n\n")[0]
        for name in re.findall(r"^  ([a-z-]+) ", commands, re.MULTILINE):
            if name != "help":
                yield from pages([*words, name])

    expected = {f"{page}.1" for page in pages([])}
    assert len(expected) > 40
    assert {path.name for path in folder.iterdir()} == expected
    text = (folder / "coffer-level-create.1").read_text()
    assert ".SH OPTIONS" in text and "rank" in text
    # Examples keep their lines.
    assert ".SH EXAMPLES\n.nf\n" in text and "\n.fi\n" in text


def test_bash_completes(installed):
    script = installed / "opt/coffer/share/bash-completion/completions/coffer"
    ask = 'source "$0"; COMP_WORDS=(coffer level cr); COMP_CWORD=2; _coffer coffer cr level; '
    told = run(["bash", "-c", ask + 'echo "${COMPREPLY[@]}"', script], clean_environment())
    assert told.split() == ["create"]


def test_a_configuration_that_is_there_stays(tmp_path):
    config = tmp_path / "etc/coffer/coffer.toml"
    config.parent.mkdir(parents=True)
    config.write_text("mine")
    make("install", f"DESTDIR={tmp_path}")
    assert config.read_text() == "mine"
    told = make("uninstall", f"DESTDIR={tmp_path}")
    assert "/etc/coffer" in told and "stay" in told
    assert files(tmp_path) == {"etc/coffer/coffer.toml"}


def test_pages_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").touch()
    done = coffer("man", tmp_path / "file/man")
    assert done.returncode == 1
    assert done.stderr.decode().startswith(f"error: {tmp_path}/file/man can't be written: ")


def test_the_packaged_configuration_is_one(tmp_path):
    """All of its keys are known, those behind comments as well."""
    text = (ROOT / "packaging/coffer.toml").read_text()
    text = re.sub(r"(?m)^# ([a-z-]+ = )", r"\1", text).replace("/var/lib", str(tmp_path))
    text = re.sub(r"127.0.0.1:\d+", "127.0.0.1:0", text)
    (tmp_path / "coffer.toml").write_text(text)
    done = coffer("serve", "--config", tmp_path / "coffer.toml")
    # It was read to its end: what is missing is the certificate that it names.
    assert done.stderr.splitlines()[-1].startswith(b"error: /etc/coffer/chain.pem"), done.stderr
