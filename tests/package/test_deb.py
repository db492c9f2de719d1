"""The Debian package in a fresh Debian 12: installed, used from outside, removed.

No systemd runs there. What it would do is done by hand: the state folder, the user, limits, filters
of system calls, and the line of `ExecStart`.
"""

import configparser
import os
import shutil
import signal
import subprocess

import pytest

from harness.clients import REGION
from harness.content import MIB, digest, write_file
from harness.links import dead_links
from harness.programs import run
from harness.server import BINARY, ROOT, clean_environment, free_port
from harness.unit import Notified, Unit

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="a root of Debian's takes root"),
    pytest.mark.timeout(600),
]

DEBIAN = ROOT / "target/packages/debian-12.tar"


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """The packages of the program that is tested."""
    out = tmp_path_factory.mktemp("packages")
    options = {"BINARY": str(BINARY), "OUT": str(out), "COMPRESSION": "none"}
    run([ROOT / "scripts/package", "deb"], clean_environment() | options)
    return {path.name.partition("_")[0]: path for path in out.iterdir()}


@pytest.fixture
def debian(tmp_path_factory):
    """A fresh Debian 12, with what the package depends on."""
    if not DEBIAN.exists():
        DEBIAN.parent.mkdir(parents=True, exist_ok=True)
        made = DEBIAN.with_suffix(".new.tar")
        depends = "--include=libssl3,systemd-standalone-sysusers"
        command = ["mmdebstrap", "--mode=root", "--variant=minbase", depends, "bookworm", made]
        run(command, clean_environment(), timeout=500)
        made.rename(DEBIAN)
    root = tmp_path_factory.mktemp("debian")
    root.chmod(0o755)
    run(["tar", "--extract", "--file", DEBIAN, "--directory", root], clean_environment())
    yield root
    shutil.rmtree(root)


def within(root, *words):
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}
    return run(["chroot", root, *words], environment)


def install(root, package):
    shutil.copy(package, root / "tmp/coffer.deb")
    said = within(root, "dpkg", "--install", "/tmp/coffer.deb")
    (root / "tmp/coffer.deb").unlink()
    return said


class Service:
    """The installed unit, started as far as that goes without systemd."""

    def __init__(self, root):
        self.root = root
        self.port, self.admin_port = free_port(), free_port()
        config = root / "etc/coffer/coffer.toml"
        text = config.read_text().replace("127.0.0.1:9000", f"127.0.0.1:{self.port}")
        config.write_text(text.replace("127.0.0.1:9001", f"127.0.0.1:{self.admin_port}"))
        self.unit = Unit(root / "usr/lib/systemd/system/coffer.service")
        entries = [line.split(":") for line in (root / "etc/passwd").read_text().splitlines()]
        ((self.user, self.group),) = [
            (int(entry[2]), int(entry[3]))
            for entry in entries
            if entry[0] == self.unit.value("User")
        ]
        self.data = root / "var/lib" / self.unit.value("StateDirectory")
        self.data.mkdir(mode=int(self.unit.value("StateDirectoryMode"), 8), exist_ok=True)
        os.chown(self.data, self.user, self.group)

    def __enter__(self):
        (self.root / "run/notify").unlink(missing_ok=True)
        self.notified = Notified(self.root / "run/notify")
        confine = self.unit.confinement()

        def become():
            os.chroot(self.root)
            os.chdir("/")
            os.setgroups([])
            os.setgid(self.group)
            os.setuid(self.user)
            confine()

        self.log = (self.root.parent / f"{self.root.name}.log").open("ab+")
        self.process = subprocess.Popen(
            self.unit.command(),
            env={"NOTIFY_SOCKET": "/run/notify"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.log,
            preexec_fn=become,
        )
        try:
            assert self.notified.next()[0] == "READY=1", self.said()
        except TimeoutError:
            self.process.kill()
            raise AssertionError(self.said()) from None
        return self

    def said(self):
        self.log.seek(0)
        return self.log.read().decode()

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.notified.close()
        (self.root / "run/notify").unlink()
        assert code == 0, self.said()
        assert "not permitted" not in self.said(), self.said()
        self.log.close()

    def aws(self, home, *words):
        profile = configparser.ConfigParser()
        profile.read(self.data / "credentials")
        environment = clean_environment() | {
            "HOME": str(home),
            "AWS_ACCESS_KEY_ID": profile["default"]["aws_access_key_id"],
            "AWS_SECRET_ACCESS_KEY": profile["default"]["aws_secret_access_key"],
            "AWS_CA_BUNDLE": str(self.data / "tls/ca.pem"),
            "AWS_DEFAULT_REGION": REGION,
        }
        endpoint = f"https://127.0.0.1:{self.port}"
        return run(["/usr/bin/aws", "--endpoint-url", endpoint, *words], environment)


def files(root):
    """What is there, but for what dpkg and the user database note of every package."""
    notes = ("var/lib/dpkg/", "var/log/", "var/cache/", "etc/passwd", "etc/group", "etc/shadow")
    notes += ("etc/gshadow", "etc/.pwd.lock", "etc/subuid", "etc/subgid")
    paths = {str(path.relative_to(root)) for path in root.rglob("*")}
    return {path for path in paths if not path.startswith(notes)}


def test_links_of_documents_lead_to_what_is_in_the_package(packages, tmp_path):
    run(["dpkg-deb", "--extract", packages["coffer"], tmp_path], clean_environment())
    documents = tmp_path / "usr/share/doc/coffer"
    assert (documents / "OPERATING.md").exists() and dead_links(documents) == []


def test_a_life_of_the_package(debian, packages, tmp_path):
    before = files(debian)
    said = install(debian, packages["coffer"])
    assert "systemctl enable --now coffer" in said, "it tells what comes next"
    assert not (debian / "var/lib/coffer").exists(), "nothing was started"
    assert within(debian, "coffer", "--version").startswith("coffer ")

    source = write_file(tmp_path / "source", 9 * MIB + 1)
    service = Service(debian)
    with service:
        service.aws(tmp_path, "s3", "mb", "s3://evidence")
        service.aws(tmp_path, "s3", "cp", source, "s3://evidence/recording")
        service.aws(tmp_path, "s3", "cp", "s3://evidence/recording", tmp_path / "back")
        assert digest(tmp_path / "back") == digest(source)
        # Root asks by the configuration of the service.
        config = ["--config", "/etc/coffer/coffer.toml"]
        assert "evidence" in within(debian, "coffer", *config, "bucket", "list")
    assert {path.stat().st_uid for path in service.data.rglob("*")} == {service.user}
    held = files(service.data)

    within(debian, "dpkg", "--remove", "coffer")
    assert not (debian / "usr/bin/coffer").exists()
    assert files(service.data) == held, "data stays"
    install(debian, packages["coffer"])
    with service:
        service.aws(tmp_path, "s3", "cp", "s3://evidence/recording", tmp_path / "again")
        assert digest(tmp_path / "again") == digest(source)

    said = within(debian, "dpkg", "--purge", "coffer")
    assert "/var/lib/coffer stays" in said
    left = {path for path in files(debian) - before if not path.startswith("var/lib/coffer")}
    assert left == set(), "nothing but data stays"
    assert before <= files(debian)
    assert held <= files(service.data)


def test_symbols_are_apart_and_fit(packages, tmp_path):
    for name, path in packages.items():
        run(["dpkg-deb", "--extract", path, tmp_path / name], clean_environment())
    program = tmp_path / "coffer/usr/bin/coffer"
    (symbols,) = (tmp_path / "coffer-dbgsym/usr/lib/debug/.build-id").glob("*/*.debug")
    notes = run(["readelf", "--notes", "--wide", program], clean_environment())
    assert f"Build ID: {symbols.parent.name}{symbols.stem}" in notes
    sections = run(["readelf", "--sections", "--wide", program], clean_environment())
    assert ".debug_line" not in sections and ".symtab" not in sections
    assert ".debug_line" in run(["readelf", "--sections", "--wide", symbols], clean_environment())


def test_it_needs_no_newer_system(packages):
    """Debian 12 has glibc 2.36."""
    needed = run(["objdump", "--dynamic-syms", BINARY], clean_environment())
    words = {word.strip("()") for word in needed.split()}
    versions = {word.removeprefix("GLIBC_") for word in words if word.startswith("GLIBC_2")}
    assert max(tuple(map(int, version.split("."))) for version in versions) <= (2, 36)
    depends = run(["dpkg-deb", "--field", packages["coffer"], "Depends"], clean_environment())
    assert "libssl3" in depends and "libc6 (>= 2." in depends
