"""Parquet: written by s3fs and pyarrow, read by them and by DuckDB.

DuckDB reads through its own httpfs extension, which this test loads from PyPI's package of it
(tests/requirements.txt says why): DuckDB's own HTTP client and signatures meet the server.
"""

from pathlib import Path

import duckdb
import duckdb_extension_httpfs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import s3fs
from pyarrow import fs

from harness.clients import REGION
from harness.content import MIB, content


@pytest.fixture(scope="module")
def table():
    rows = 400_000
    noise = pa.py_buffer(content(200 * rows))
    numbers = pa.array(range(rows), pa.int64())
    return pa.table(
        {
            "number": numbers,
            "group": pc.bit_wise_and(numbers, 7),
            "noise": pa.FixedSizeBinaryArray.from_buffers(pa.binary(200), rows, [None, noise]),
        }
    )


@pytest.fixture(scope="module")
def arrow(server):
    access_key_id, secret_access_key = server.credentials()
    return fs.S3FileSystem(
        access_key=access_key_id,
        secret_key=secret_access_key,
        region=REGION,
        endpoint_override=server.endpoint,
        allow_bucket_creation=True,
        allow_bucket_deletion=True,
        tls_ca_file_path=str(server.ca),
    )


@pytest.fixture(scope="module")
def s3_files(server):
    access_key_id, secret_access_key = server.credentials()
    return s3fs.S3FileSystem(
        key=access_key_id,
        secret=secret_access_key,
        endpoint_url=server.endpoint,
        client_kwargs={"verify": str(server.ca), "region_name": REGION},
        skip_instance_cache=True,
    )


@pytest.fixture(scope="module")
def duck(server):
    access_key_id, secret_access_key = server.credentials()
    connection = duckdb.connect()
    package = Path(duckdb_extension_httpfs.__path__[0])
    extension = next(package.rglob("httpfs.duckdb_extension"))
    connection.execute(f"LOAD '{extension}'")
    connection.execute(f"SET ca_cert_file = '{server.ca}'")
    connection.execute("SET enable_server_cert_verification = true")
    connection.execute(
        "CREATE SECRET (TYPE s3, PROVIDER config, URL_STYLE 'path', "
        f"KEY_ID '{access_key_id}', SECRET '{secret_access_key}', REGION '{REGION}', "
        f"ENDPOINT '127.0.0.1:{server.port}')"
    )
    yield connection
    connection.close()


def test_pyarrow(arrow, table):
    arrow.create_dir("arrow")
    pq.write_table(table, "arrow/dir/table.parquet", filesystem=arrow)
    info = arrow.get_file_info("arrow/dir/table.parquet")
    assert info.size > 64 * MIB, "large enough for several parts"
    assert pq.read_table("arrow/dir/table.parquet", filesystem=arrow).equals(table)
    one = pq.read_table(
        "arrow/dir/table.parquet",
        filesystem=arrow,
        columns=["number"],
        filters=[("group", "=", 3)],
    )
    assert one.num_rows == table.num_rows // 8
    arrow.delete_dir("arrow")


def test_partitioned_dataset(arrow, table):
    arrow.create_dir("arrow-dataset")
    small = table.select(["number", "group"])
    ds.write_dataset(
        small,
        "arrow-dataset/table",
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("group", pa.int64())]), flavor="hive"),
        filesystem=arrow,
    )
    dataset = ds.dataset("arrow-dataset/table", filesystem=arrow, partitioning="hive")
    assert len(dataset.files) == 8
    assert dataset.to_table(filter=pc.field("group") == 5).num_rows == table.num_rows // 8
    arrow.delete_dir("arrow-dataset")


def test_s3fs(s3_files, table, tmp_path):
    s3_files.mkdir("s3fs")
    with s3_files.open("s3fs/dir/table.parquet", "wb") as file:
        pq.write_table(table, file)
    with s3_files.open("s3fs/dir/table.parquet", "rb") as file:
        assert pq.read_table(file).equals(table)
    assert s3_files.ls("s3fs/dir") == ["s3fs/dir/table.parquet"]
    s3_files.get("s3fs/dir/table.parquet", str(tmp_path / "back"))
    s3_files.put(str(tmp_path / "back"), "s3fs/again.parquet")
    assert s3_files.du("s3fs") == 2 * (tmp_path / "back").stat().st_size
    s3_files.rm("s3fs", recursive=True)
    assert not s3_files.exists("s3fs")


def test_duckdb(duck, arrow, table):
    arrow.create_dir("duck")
    pq.write_table(table, "duck/table.parquet", filesystem=arrow)
    count, total = duck.execute(
        "SELECT count(*), sum(number) FROM 's3://duck/table.parquet' WHERE \"group\" = 3"
    ).fetchone()
    assert (count, total) == (50_000, sum(range(3, 400_000, 8)))
    noise = duck.execute(
        "SELECT noise FROM 's3://duck/*.parquet' WHERE number = 399999"
    ).fetchone()[0]
    assert noise == table["noise"][399_999].as_py()
    duck.execute("COPY (SELECT range AS n FROM range(1000)) TO 's3://duck/written.parquet'")
    back = pq.read_table("duck/written.parquet", filesystem=arrow)
    assert back["n"].to_pylist() == list(range(1000))
    arrow.delete_dir("duck")
