"""Writes what the fuzzers begin with: make_seeds.py OUT. OUT/TARGET/NAME are small files that between them have every structure of their format."""

import gzip
import io
import itertools
import json
import pathlib
import struct
import sys
import zipfile
import zlib

import h5py
import numpy as np


def make_json(out):
    (out / "config").write_text(json.dumps({"class_name": "Dense", "config": {"units": 10, "rate": 1.5e-3, "names": ["a", "é\n"], "none": None, "on": True}}))
    (out / "numbers").write_text("[0, -1, 1.5, 1e300, 1e-320, 9223372036854775808, NaN, Infinity, -Infinity]")
    (out / "nested").write_text("[" * 20 + "{}" + "]" * 20)
    (out / "escapes").write_text(r'["\u00e9\ud83d\ude00\n\t\"\\", "plain"]')


class Unseekable(io.BytesIO):
    def seekable(self):
        return False

    def tell(self):
        raise io.UnsupportedOperation


def make_zip(out):
    for seekable, zip64, method in itertools.product((True, False), (True, False), (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)):
        buffer = io.BytesIO() if seekable else Unseekable()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            for name in ("metadata.json", "assets/é"):
                with archive.open(name, "w", force_zip64=zip64) as member:
                    member.write(name.encode() * 9)
        (out / f"{seekable}_{zip64}_{method}.zip").write_bytes(buffer.getvalue())


def small_hdf5():
    """Name → what to write into an open file."""

    def put(name, value, **options):
        return lambda file: file.create_dataset(name, data=value, **options)

    def grow(name, maximum, **options):
        return lambda file: file.create_dataset(name, data=np.arange(24, dtype="i2").reshape(4, 6), chunks=(3, 2), maxshape=maximum, **options)

    def attributes(count):
        def write(file):
            for i in range(count):
                file.attrs[f"a{i}"] = f"text {i}" if i % 2 else i
        return write

    def links(count):
        def write(file):
            for i in range(count):
                file.create_group(f"g{i}")
            file["g0/soft"] = h5py.SoftLink("/g1")
            file["g0/data"] = np.float32(1)
        return write

    def bfloat16(file):
        file.create_dataset("b", data=np.zeros(2, "V2")).attrs["dtype"] = "bfloat16"

    def typed(file):
        file["type"] = np.dtype("f4")
        file.create_dataset("d", (2,), file["type"])

    return {
        "floats": put("d", np.arange(6, dtype="f4").reshape(2, 3)),
        "halves": put("d", np.arange(3, dtype=">f2")),
        "bools": put("d", np.array([True, False])),
        "compound": put("d", np.zeros(1, [("a", "i4")])),
        "fixed_strings": put("d", np.array([b"a", b"bc"])),
        "strings": put("d", ["a", "bc"]),
        "null": put("d", h5py.Empty("f4")),
        "fixed": grow("d", None),
        "filtered": grow("d", None, compression="gzip", shuffle=True, fletcher32=True),
        "extensible": grow("d", (None, 6), compression="gzip"),
        "tree": grow("d", (None, None)),
        "single": put("d", np.arange(4), chunks=(4,), compression="gzip"),
        "pages": put("d", np.arange(1100, dtype="i1"), chunks=(1,)),
        "attributes": attributes(3),
        "many_attributes": attributes(12),
        "links": links(3),
        "many_links": links(12),
        "bfloat16": bfloat16,
        "typed": typed,
    }


def make_hdf5(out):
    for name, write in small_hdf5().items():
        for libver in ("latest",) if name == "pages" else ("earliest", "latest"):
            with h5py.File(out / f"{name}_{libver}.h5", "w", libver=(libver, "latest"), track_order=name.startswith("many") or None) as file:
                write(file)


def make_http_infer(out):
    """The first byte is the kind, the second how many bytes follow the JSON, or which encoding or input."""
    tensor = {"name": "a", "shape": [1, 2], "datatype": "FP32"}
    json_data = {"id": "1", "inputs": [tensor | {"data": [[1, 2.5]]}], "outputs": [{"name": "o", "parameters": {"binary_data": True}}], "parameters": {"priority": 1, "timeout": 5}}
    (out / "v2_json").write_bytes(b"\0\0" + json.dumps(json_data).encode())
    (out / "v2_binary").write_bytes(b"\0\x08" + json.dumps({"inputs": [tensor | {"parameters": {"binary_data_size": 8}}]}).encode() + bytes(8))
    (out / "tf_rows").write_bytes(b"\1\0" + json.dumps({"instances": [{"a": [1, 2], "b": 3, "c": [True]}]}).encode())
    (out / "tf_columns").write_bytes(b"\1\0" + json.dumps({"signature_name": "serving_default", "inputs": {"a": [[1, 2]], "b": [3], "c": [[False]]}}).encode())
    (out / "tf_one").write_bytes(b"\2\0" + json.dumps({"instances": [[1, 2], [3, 4]]}).encode())
    (out / "gzip").write_bytes(b"\3\1" + gzip.compress(b"hello" * 100, mtime=0))
    (out / "deflate").write_bytes(b"\3\0" + zlib.compress(b"hello" * 100))
    for name, path in {"infer": "/v2/models/a%20b/versions/3/infer", "predict": "/v1/models/a:predict", "load": "/v2/repository/models/a/load"}.items():
        (out / f"path_{name}").write_bytes(b"\4\0" + path.encode())


def make_serve_region(out):
    """The first byte says whether it is a control message or a region: how many requests, eight of them, the beginnings of slots."""
    hello = json.dumps({"hello": 1, "slots": 8, "slot_bytes": 65536}).encode()
    (out / "hello").write_bytes(b"\0" + struct.pack("<I", len(hello)) + hello)
    predict, cancel = (struct.pack("<QIIIIiIQQ16x", tag, tag, 0, 0, 2 - tag, 0, 0, 256, 0) for tag in (1, 2))
    tensor = struct.pack("<IIQQQ8q", 11, 2, 128, 16, 0, 1, 4, 0, 0, 0, 0, 0, 0)
    (out / "region").write_bytes(b"\1\2" + predict + cancel + bytes(6 * 64) + tensor)


def main():
    for name, make in {"json": make_json, "zip": make_zip, "hdf5": make_hdf5, "http_infer": make_http_infer, "serve_region": make_serve_region}.items():
        folder = pathlib.Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        make(folder)


if __name__ == "__main__":
    main()
