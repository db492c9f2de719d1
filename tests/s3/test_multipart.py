"""Multipart uploads."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from harness.clients import refused, s3_client
from harness.content import MIB, PART_MIN_BYTES, content


class Upload:
    """One upload under way."""

    def __init__(self, s3, bucket, name="a", **options):
        self.s3 = s3
        created = s3.create_multipart_upload(Bucket=bucket, Key=name, **options)
        self.where = {"Bucket": bucket, "Key": name, "UploadId": created["UploadId"]}
        self.etags = {}
        # What a completion must say where a checksum of the parts' checksums was announced.
        self.sums = {}
        self.announced = options.get("ChecksumAlgorithm")

    def put(self, number, body, **options):
        answer = self.s3.upload_part(**self.where, PartNumber=number, Body=body, **options)
        self.etags[number] = answer["ETag"]
        if self.announced:
            name = f"Checksum{self.announced}"
            self.sums[number] = {name: answer[name]}
        return answer

    def complete(self, numbers=None, **options):
        numbers = sorted(self.etags) if numbers is None else numbers
        parts = [
            {"PartNumber": n, "ETag": self.etags.get(n, '"none"')} | self.sums.get(n, {})
            for n in numbers
        ]
        return self.s3.complete_multipart_upload(
            **self.where, MultipartUpload={"Parts": parts}, **options
        )

    def abort(self):
        self.s3.abort_multipart_upload(**self.where)

    def read(self):
        where = {"Bucket": self.where["Bucket"], "Key": self.where["Key"]}
        return self.s3.get_object(**where)["Body"].read()


def test_parts_out_of_order_and_replaced(s3, bucket, server):
    upload = Upload(s3, bucket)
    bodies = {number: content(PART_MIN_BYTES + number, number) for number in (1, 2, 3, 7)}
    for number in (7, 2):
        upload.put(number, bodies[number])
    upload.put(1, content(6 * MIB, "replaced"))
    upload.put(3, bodies[3])
    upload.put(1, bodies[1])
    with refused("NoSuchKey"):
        s3.get_object(Bucket=bucket, Key="a")
    answer = upload.complete()
    assert answer["ETag"].strip('"').endswith("-4")
    assert upload.read() == b"".join(bodies.values())
    head = s3.head_object(Bucket=bucket, Key="a")
    assert head["ETag"] == answer["ETag"]
    assert head["ContentLength"] == sum(map(len, bodies.values()))
    assert answer["Location"].endswith(f"/{bucket}/a")
    assert s3.list_multipart_uploads(Bucket=bucket).get("Uploads") is None


def test_completing_some_parts_frees_the_others(s3, bucket, server):
    assert server.blob_bytes_at_most(0), "left by an earlier test"
    upload = Upload(s3, bucket)
    for number in (1, 2, 3):
        upload.put(number, content(PART_MIN_BYTES, number))
    upload.complete([1, 3])
    assert upload.read() == content(PART_MIN_BYTES, 1) + content(PART_MIN_BYTES, 3)
    assert server.blob_bytes_at_most(2 * PART_MIN_BYTES * 1.01)


def test_abort_leaves_no_bytes(s3, bucket, server):
    assert server.blob_bytes_at_most(0), "left by an earlier test"
    upload = Upload(s3, bucket)
    upload.put(1, content(PART_MIN_BYTES))
    upload.put(2, b"small")
    assert server.blob_bytes() > PART_MIN_BYTES
    upload.abort()
    assert server.blob_bytes_at_most(0)
    with refused("NoSuchUpload", 404):
        upload.abort()
    with refused("NoSuchUpload", 404):
        upload.put(1, b"late")
    with refused("NoSuchUpload", 404):
        upload.complete()
    assert server.blob_bytes_at_most(0)


def test_small_parts(s3, bucket):
    upload = Upload(s3, bucket)
    upload.put(1, b"one")
    upload.put(2, b"two")
    with refused("EntityTooSmall", 400):
        upload.complete()
    upload.put(1, content(PART_MIN_BYTES))
    upload.complete()
    assert upload.read() == content(PART_MIN_BYTES) + b"two"


def test_one_small_part(s3, bucket):
    for body in (b"", b"tiny", content(20_000)):
        upload = Upload(s3, bucket)
        upload.put(5, body)
        assert upload.complete()["ETag"].strip('"').endswith("-1")
        assert upload.read() == body


def test_wrong_completions(s3, bucket):
    upload = Upload(s3, bucket)
    upload.put(1, content(PART_MIN_BYTES))
    upload.put(2, b"two")
    with refused("InvalidPartOrder", 400):
        upload.complete([2, 1])
    with refused("InvalidPartOrder", 400):
        upload.complete([1, 1])
    with refused("InvalidPart", 400):
        upload.complete([1, 3])
    with refused("MalformedXML", 400):
        upload.complete([])
    good, upload.etags[2] = upload.etags[2], '"other"'
    with refused("InvalidPart", 400):
        upload.complete()
    upload.etags[2] = good
    upload.complete()
    assert upload.read() == content(PART_MIN_BYTES) + b"two"


@pytest.mark.parametrize("number", [0, -1, 10_001])
def test_part_numbers_outside(s3, bucket, number):
    upload = Upload(s3, bucket)
    with refused("InvalidArgument", 400):
        upload.put(number, b"a")


def test_an_upload_belongs_to_its_name(s3, bucket):
    upload = Upload(s3, bucket)
    upload.put(1, b"a")
    upload.where["Key"] = "b"
    with refused("NoSuchUpload", 404):
        upload.put(2, b"b")
    with refused("NoSuchUpload", 404):
        upload.complete()
    with refused("NoSuchUpload", 404):
        s3.list_parts(**upload.where)


@pytest.mark.parametrize("upload_id", ["nonsense", "0" * 32, "../../etc", "ü"])
def test_upload_ids_of_others(s3, bucket, upload_id):
    with refused("NoSuchUpload", 404):
        s3.upload_part(Bucket=bucket, Key="a", UploadId=upload_id, PartNumber=1, Body=b"a")


def test_description_comes_from_the_beginning(s3, bucket):
    upload = Upload(
        s3,
        bucket,
        ContentType="text/x-parts",
        CacheControl="no-cache",
        Metadata={"colour": "blue"},
        Tagging="a=1&b=2",
    )
    upload.put(1, b"a")
    upload.complete()
    head = s3.head_object(Bucket=bucket, Key="a")
    assert head["ContentType"] == "text/x-parts"
    assert head["CacheControl"] == "no-cache"
    assert head["Metadata"] == {"colour": "blue"}
    tags = s3.get_object_tagging(Bucket=bucket, Key="a")["TagSet"]
    assert tags == [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]


def test_list_parts(s3, bucket):
    upload = Upload(s3, bucket)
    for number in (3, 1, 9, 4):
        upload.put(number, content(100 * number))
    pages = s3.get_paginator("list_parts").paginate(
        **upload.where, PaginationConfig={"PageSize": 3}
    )
    pages = list(pages)
    assert [page["IsTruncated"] for page in pages] == [True, False]
    parts = [part for page in pages for part in page["Parts"]]
    assert [part["PartNumber"] for part in parts] == [1, 3, 4, 9]
    assert [part["Size"] for part in parts] == [100, 300, 400, 900]
    assert [part["ETag"] for part in parts] == [upload.etags[n] for n in (1, 3, 4, 9)]
    assert all(part["LastModified"].year >= 2025 for part in parts)
    assert pages[0]["Key"] == "a" and pages[0]["UploadId"] == upload.where["UploadId"]


def test_list_uploads(s3, bucket):
    uploads = [Upload(s3, bucket, name) for name in ("b", "a", "dir/x", "a", "dir/y", "ü")]
    expected = sorted((u.where["Key"], u.where["UploadId"]) for u in uploads)
    rows = []
    markers = {}
    while True:
        page = s3.list_multipart_uploads(Bucket=bucket, MaxUploads=2, **markers)
        rows += [(row["Key"], row["UploadId"]) for row in page["Uploads"]]
        if not page["IsTruncated"]:
            break
        markers = {
            "KeyMarker": page["NextKeyMarker"],
            "UploadIdMarker": page["NextUploadIdMarker"],
        }
    assert [name for name, _ in rows] == [name for name, _ in expected]
    assert sorted(rows) == expected
    page = s3.list_multipart_uploads(Bucket=bucket, Delimiter="/")
    assert [row["Key"] for row in page["Uploads"]] == ["a", "a", "b", "ü"]
    assert [row["Prefix"] for row in page["CommonPrefixes"]] == ["dir/"]
    page = s3.list_multipart_uploads(Bucket=bucket, Prefix="dir/")
    assert [row["Key"] for row in page["Uploads"]] == ["dir/x", "dir/y"]


def test_parts_copied(s3, bucket):
    source = content(2 * PART_MIN_BYTES, "source")
    s3.put_object(Bucket=bucket, Key="source", Body=source)
    s3.put_object(Bucket=bucket, Key="small", Body=b"small")
    upload = Upload(s3, bucket)

    def copy(number, name, **options):
        answer = s3.upload_part_copy(
            **upload.where,
            PartNumber=number,
            CopySource={"Bucket": bucket, "Key": name},
            **options,
        )
        upload.etags[number] = answer["CopyPartResult"]["ETag"]

    copy(1, "source")
    copy(2, "source", CopySourceRange=f"bytes=10-{PART_MIN_BYTES + 9}")
    upload.put(3, content(PART_MIN_BYTES, 3))
    copy(4, "small")
    with refused("InvalidArgument", 400):
        copy(5, "small", CopySourceRange="bytes=0-5")
    with refused("NoSuchKey", 404):
        copy(5, "missing")
    with refused("PreconditionFailed", 412):
        copy(5, "small", CopySourceIfMatch='"other"')
    upload.complete([1, 2, 3, 4])
    expected = source + source[10 : PART_MIN_BYTES + 10] + content(PART_MIN_BYTES, 3) + b"small"
    assert upload.read() == expected


def test_parts_at_once(s3, bucket):
    upload = Upload(s3, bucket)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: upload.put(n, content(PART_MIN_BYTES, n)), range(1, 13)))
    upload.complete()
    assert upload.read() == b"".join(content(PART_MIN_BYTES, n) for n in range(1, 13))


def test_the_same_part_at_once(s3, bucket, server):
    assert server.blob_bytes_at_most(0), "left by an earlier test"
    upload = Upload(s3, bucket)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: upload.put(1, content(100_000, n)), range(16)))
    part = s3.list_parts(**upload.where)["Parts"][0]
    upload.etags[1] = part["ETag"]
    upload.complete()
    assert upload.read() in [content(100_000, n) for n in range(16)]
    assert server.blob_bytes_at_most(110_000)


def test_size_announced_at_the_end(s3, bucket):
    upload = Upload(s3, bucket)
    upload.put(1, b"abc")
    with refused("InvalidRequest", 400):
        upload.complete(MpuObjectSize=4)
    upload.complete(MpuObjectSize=3)


def test_ten_thousand_parts(s3, bucket):
    upload = Upload(s3, bucket)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: upload.put(n, f"{n}".encode()), range(1, 10_001)))
    pages = s3.get_paginator("list_parts").paginate(**upload.where)
    numbers = [part["PartNumber"] for page in pages for part in page["Parts"]]
    assert numbers == list(range(1, 10_001))
    # All 10,000 are found and compared: the refusal is about the size of the first.
    with refused("EntityTooSmall", 400):
        upload.complete()
    upload.complete([10_000])
    assert upload.read() == b"10000"


def told(answer):
    return {name: answer[name] for name in answer if name != "ResponseMetadata"}


def test_completing_again_answers_the_same(own_server):
    server = own_server()
    server.start()
    s3 = s3_client(server)
    s3.create_bucket(Bucket="again")
    upload = Upload(s3, "again", ChecksumAlgorithm="SHA256")
    for number in (1, 2):
        upload.put(number, content(PART_MIN_BYTES, number), ChecksumAlgorithm="SHA256")
    first = told(upload.complete(IfNoneMatch="*"))
    assert told(upload.complete(IfNoneMatch="*")) == first
    assert told(upload.complete()) == first
    with refused("NoSuchUpload", 404):
        upload.complete([1])
    with refused("NoSuchUpload", 404):
        Upload.complete(elsewhere(upload, Key="b"))
    with refused("NoSuchUpload", 404):
        upload.put(3, b"late")

    # It brings back nothing that was replaced or deleted since.
    s3.put_object(Bucket="again", Key="a", Body=b"newer")
    assert told(upload.complete()) == first
    assert upload.read() == b"newer"
    s3.delete_object(Bucket="again", Key="a")
    assert told(upload.complete()) == first
    with refused("NoSuchKey", 404):
        upload.read()

    server.kill()
    server.start()
    upload.s3 = s3_client(server)
    assert told(upload.complete()) | {"Location": ""} == first | {"Location": ""}
    with refused("NoSuchKey", 404):
        upload.read()


def elsewhere(upload, **where):
    other = Upload.__new__(Upload)
    other.s3, other.etags, other.sums = upload.s3, upload.etags, upload.sums
    other.where = upload.where | where
    return other


def test_many_who_complete_at_once_hear_the_same(s3, bucket):
    upload = Upload(s3, bucket)
    upload.put(1, b"once")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: told(upload.complete()), range(8)))
    assert all(answer == answers[0] for answer in answers)
    assert upload.read() == b"once"


def test_an_upload_that_is_completed_meanwhile_is_listed_with_its_parts(server, s3, bucket):
    stop, uploads, wrong = threading.Event(), [], []

    def look():
        client = s3_client(server)
        while not stop.is_set():
            with suppress(client.exceptions.NoSuchUpload):
                if not client.list_parts(**uploads[-1].where).get("Parts"):
                    wrong.append(uploads[-1].where)

    def begin():
        upload = Upload(s3, bucket)
        upload.put(1, b"part")
        uploads.append(upload)

    begin()
    with ThreadPoolExecutor(4) as pool:
        lookers = [pool.submit(look) for _ in range(4)]
        end = time.monotonic() + 6
        while time.monotonic() < end:
            uploads[-1].complete()
            begin()
        stop.set()
    assert [looker.result() for looker in lookers] == [None] * 4
    s3.abort_multipart_upload(**uploads[-1].where)
    assert not wrong


def test_an_upload_of_a_bucket_that_is_not_there(s3, bucket):
    nowhere = {"Bucket": "nowhere", "Key": "a", "UploadId": "none"}
    calls = (
        lambda **where: s3.upload_part(**where, PartNumber=1, Body=b"a"),
        s3.list_parts,
        s3.abort_multipart_upload,
    )
    for call in calls:
        with refused("NoSuchBucket", 404):
            call(**nowhere)
        with refused("NoSuchUpload", 404):
            call(**nowhere | {"Bucket": bucket})


@pytest.mark.parametrize(("algorithm", "kind"), [("SHA256", "COMPOSITE"), ("CRC32", "FULL_OBJECT")])
def test_parts_with_checksums_have_no_gaps(s3, bucket, algorithm, kind):
    upload = Upload(s3, bucket, ChecksumAlgorithm=algorithm, ChecksumType=kind)
    for number in (1, 2, 4):
        upload.put(number, content(PART_MIN_BYTES, number), ChecksumAlgorithm=algorithm)
    for numbers in ([1, 2, 4], [2, 4], [4], [1, 4]):
        with refused("InvalidPartOrder", 400):
            upload.complete(numbers)
    upload.complete([1, 2])
    assert upload.read() == content(PART_MIN_BYTES, 1) + content(PART_MIN_BYTES, 2)
