"""Whether clients may have data keys: said when a level is made, shown, and for good."""

from harness.auditing import export
from harness.custodian import ask, run


def levels(server):
    return {level["name"]: level["sealed_transfer"] for level in ask(server, "level", "list")}


def test_a_level_says_for_good_whether_clients_may_have_data_keys(own_server):
    server = own_server().start()
    same = ("--rank", "0", "--same-label")
    made = ask(server, "level", "create", "video", *same, "--sealed-transfer")
    assert made["sealed_transfer"] is True
    assert ask(server, "level", "create", "plain", *same)["sealed_transfer"] is False
    expected = {"default": False, "plain": False, "video": True}
    assert levels(server) == expected
    assert "clients may have data keys" in run(server, "level", "show", "video")
    assert "SEALED TRANSFER" in run(server, "level", "list").splitlines()[0]

    server.kill()
    server.start()
    assert levels(server) == expected
    told = {
        record["details"]["level"]: record["details"]["sealed_transfer"]
        for record in export(server, "--act", "level.create")
    }
    assert told == {"plain": "false", "video": "true"}
