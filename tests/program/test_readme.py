"""What the README tells people to type does what it says."""

import json
import re

import pytest

from harness import raw
from harness.clients import s3_client
from harness.content import MIB, content
from harness.documents import blocks, run
from harness.server import ROOT, Server

README = (ROOT / "README.md").read_text()


def section(title):
    return README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.fixture
def folder(tmp_path):
    """A folder as the README assumes it: some files, and the server's data beside them."""
    (tmp_path / "recording.mkv").write_bytes(content(20 * MIB + 7))
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings/one.mkv").write_bytes(content(MIB, 1))
    return tmp_path


def test_the_lines_for_clients(folder):
    found = blocks(section("Clients"))
    assert len(found) >= 4
    # One shell for all: later clients use what was exported for earlier ones.
    script = "\n".join(
        text if language == "sh" else f"python - <<'THE_END'\n{text}\nTHE_END"
        for language, text in found
    )
    with Server(folder, data=folder / "coffer-data") as server:
        run(folder, script.replace("127.0.0.1:9000", f"127.0.0.1:{server.port}"))
        s3 = s3_client(server)
        got = s3.get_object(Bucket="evidence", Key="recording.mkv")["Body"].read()
        assert got == content(20 * MIB + 7)
        names = [row["Key"] for row in s3.list_objects_v2(Bucket="evidence")["Contents"]]
        assert "recordings/one.mkv" in names


def test_the_lines_for_looking_after_it(folder):
    found = blocks(section("Looking after it"))
    assert [language for language, _ in found] == ["sh"]
    with Server(folder, data=folder / "coffer-data") as server:
        s3_client(server).create_bucket(Bucket="evidence")
        lines = [line for line in found[0][1].splitlines() if "offline" not in line]
        script = "\n".join(lines).replace("127.0.0.1:9001", f"127.0.0.1:{server.admin_port}")
        assert "coffer_damage_total" in run(folder, script)
        server.stop()
        lines = [line for line in found[0][1].splitlines() if "offline" in line]
        assert "evidence" in run(folder, "\n".join(lines))


def test_the_lines_for_sealed_transfer(folder):
    [(language, lines)] = blocks(README.partition("\n### Moving files")[2].partition("\n## ")[0])
    assert language == "sh"
    with Server(folder, data=folder / "coffer-data") as server:
        run(folder, lines)
        assert raw.metric(server, "coffer_transfers_total") > 0


def test_the_lines_for_opening_a_blob_elsewhere(folder):
    found = [text for language, text in blocks(README) if "cobblestone" in text]
    assert len(found) == 1
    with Server(folder, data=folder / "coffer-data") as server:
        s3 = s3_client(server)
        s3.create_bucket(Bucket="evidence")
        s3.upload_file(str(folder / "recording.mkv"), "evidence", "recording.mkv")
        assert server.stop() == 0
        run(folder, f"python - <<'THE_END'\n{found[0]}\nTHE_END")
    assert (folder / "opened.mkv").read_bytes() == content(20 * MIB + 7)


def test_the_tour_of_levels(folder):
    found = blocks(section("Levels, in two minutes"))
    assert [language for language, _ in found] == ["sh"]
    with Server(folder, data=folder / "coffer-data") as server:
        endpoint = f"https://127.0.0.1:{server.port}"
        script = found[0][1].replace("https://127.0.0.1:9000", endpoint)
        script = script.replace("coffer prove ", f"coffer prove --s3 {endpoint} ")
        said = run(folder, script)
        receipt = json.loads((folder / "receipt.json").read_text())
        assert receipt["erased"]["level"]["name"] == "secret"
        assert (receipt["erased"]["objects"], receipt["erased"]["bytes"]) == (1, 20 * MIB + 7)
        for expected in ("genuine", "level.erase", "proven: nothing else is readable"):
            assert expected in said, said
        assert not (folder / "coffer-data" / "buckets").exists() or server.blob_files() == []


OPERATING = (ROOT / "docs" / "OPERATING.md").read_text()


def test_the_operators_guide(folder):
    """Every command of the guide that a server of the test's own can take, in its order."""
    lines = "\n".join(text for language, text in blocks(OPERATING) if language == "sh")
    lines = re.sub(r"\\\n\s*", "", lines).splitlines()
    (folder / "disk").mkdir()
    with Server(folder, data=folder / "coffer-data") as server:
        exports = [
            f"export AWS_ENDPOINT_URL=https://127.0.0.1:{server.port}",
            f"export AWS_CA_BUNDLE={server.ca} AWS_DEFAULT_REGION=us-east-1 DATA=coffer-data",
        ]
        script = "\n".join(exports + lines)
        script = script.replace("https://127.0.0.1:9001", f"https://127.0.0.1:{server.admin_port}")
        script = script.replace("--cacert DATA", "--cacert $DATA")
        script = script.replace("coffer prove ", "coffer prove --s3 $AWS_ENDPOINT_URL ")
        script = script.replace("/mnt/backup", str(folder / "backup"))
        script = script.replace("/mnt/disk", str(folder / "disk"))
        # The first round may not be done yet.
        verified = "until coffer replica verify disk; do sleep 1; done"
        script = script.replace("coffer replica verify disk ", f"{verified} ")
        script = script.replace("/root/kept-apart/root.key", f"{server.data}/root.key")
        # The guide has made a level of two approvals by then: what is printed is a request.
        asked = r"\1 || { [ $? = 3 ] && echo asked; }"
        script = re.sub(r"(?m)^(coffer audit prune [^#\n]*).*$", asked, script)
        said = run(folder, script)
    assert "all sound" in said and "proven" in said
    assert said.endswith("asked\n")
    assert '"Location": "/notes"' in said
