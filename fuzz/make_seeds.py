"""Writes what the fuzzers begin with: make_seeds.py OUT. OUT/TARGET/NAME are small files that between them have every structure of their format."""

import io
import itertools
import json
import pathlib
import sys
import zipfile

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


def main():
    for name, make in {"json": make_json, "zip": make_zip, "hdf5": make_hdf5}.items():
        folder = pathlib.Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        make(folder)


if __name__ == "__main__":
    main()
