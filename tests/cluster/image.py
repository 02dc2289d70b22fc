#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a container image, as an archive that `ctr images import` takes.

    image.py OUT --name NAME [--name NAME]... [--root FOLDER] [--package PACKAGE]...
             [--without PATTERN]... [-- COMMAND...]

The image has one layer: what is in FOLDER, and what the Debian PACKAGEs that are installed here brought,
with the shared libraries that any of it is linked to, wherever those come from. So the packages that a
dependency asks for but no program loads stay out, and nothing is downloaded. Documents, headers, static
libraries and files that match a PATTERN stay out as well; what Python compiled of its files comes along, since
each pod would compile it again.
"""
import argparse
import fnmatch
import hashlib
import importlib.util
import io
import json
import os
import platform
import stat
import subprocess
import sys
import tarfile
import tempfile

SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
LEFT_OUT = ["/usr/share/*", "/usr/include/*", "*.a", "*.la", "*.h", "/etc/*", "/var/*", "/.",
            "/usr/lib/systemd/*", "/usr/lib/debug/*"]


def canonical(path):
    """The name of a file with the links of its folder followed, but not one that it is itself."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


class Files:
    """Files of this machine, by the name they have in the image."""

    def __init__(self):
        self.paths = {}

    def add(self, path):
        while True:
            name = canonical(path)
            if name in self.paths or not os.path.lexists(name):
                return
            self.paths[name] = name
            if not os.path.islink(name):
                return
            path = os.path.join(os.path.dirname(name), os.readlink(name))

    def add_package(self, package, without):
        listed = subprocess.run(["dpkg-query", "-L", package], stdout=subprocess.PIPE, text=True, check=True).stdout
        for path in listed.splitlines():
            if any(fnmatch.fnmatch(canonical(path), pattern) for pattern in without) or not os.path.lexists(path):
                continue
            if os.path.islink(path) or not os.path.isdir(path):
                self.add(path)
                if path.endswith(".py"):
                    self.add(importlib.util.cache_from_source(path))

    def add_libraries(self):
        programs = [path for path in self.paths.values() if is_elf(path)]
        # What is linked to nothing is no failure of ldd's, though it says so.
        listed = subprocess.run(["ldd", *programs], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        for line in listed.splitlines():
            words = line.split()
            if line.endswith("not found"):
                sys.exit(f"image.py: something is linked to {words[0]}, which is not installed")
            path = words[2] if "=>" in words else words[0] if words else ""
            if path.startswith("/") and not path.endswith(":"):
                self.add(path)

    def add_folder(self, folder):
        for where, folders, files in os.walk(folder):
            for name in folders + files:
                path = os.path.join(where, name)
                self.paths[path[len(folder.rstrip("/")):]] = path


def is_elf(path):
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def entry_of(tar, name, path):
    entry = tar.gettarinfo(path, "." + name)
    entry.type = tarfile.REGTYPE if entry.islnk() else entry.type
    entry.size = os.path.getsize(path) if entry.isreg() else 0
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode = stat.S_IMODE(entry.mode)
    return entry


def write_layer(out, paths):
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        made = set()
        for name in sorted(paths):
            parts = name.strip("/").split("/")[:-1]
            for depth in range(1, len(parts) + 1):
                folder = "/" + "/".join(parts[:depth])
                if folder not in made and folder not in paths:
                    made.add(folder)
                    entry = tarfile.TarInfo("." + folder)
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                    tar.addfile(entry)
            entry = entry_of(tar, name, paths[name])
            if entry.isreg():
                with open(paths[name], "rb") as file:
                    tar.addfile(entry, file)
            elif entry.isdir() or entry.issym():
                tar.addfile(entry)


def sha256(file):
    digest = hashlib.sha256()
    file.seek(0)
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


class Archive:
    """The layout of images of the Open Container Initiative, in a tar."""

    def __init__(self, tar):
        self.tar = tar

    def put(self, name, file):
        entry = tarfile.TarInfo(name)
        file.seek(0, os.SEEK_END)
        entry.size = file.tell()
        file.seek(0)
        self.tar.addfile(entry, file)
        return entry.size

    def blob(self, kind, file):
        digest = sha256(file)
        size = self.put("blobs/sha256/" + digest, file)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": "sha256:" + digest, "size": size}

    def blob_of(self, kind, value):
        return self.blob(kind, io.BytesIO(json.dumps(value).encode()))


def write_image(out, names, command, layer):
    archive = Archive(out)
    # Not compressed: it is read on the machine where it is made.
    tree = archive.blob("layer.v1.tar", layer)
    config = archive.blob_of("config.v1+json", {
        "architecture": ARCHITECTURE, "os": "linux", "created": "1970-01-01T00:00:00Z",
        "config": {"Env": ["PATH=" + SEARCH], "Cmd": command, "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [tree["digest"]]}})
    manifest = archive.blob_of("manifest.v1+json", {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
        "layers": [tree]})
    manifest["platform"] = {"architecture": ARCHITECTURE, "os": "linux"}
    index = {"schemaVersion": 2, "manifests": [
        {**manifest, "annotations": {"io.containerd.image.name": name,
                                     "org.opencontainers.image.ref.name": name.rsplit(":", 1)[1]}} for name in names]}
    archive.put("index.json", io.BytesIO(json.dumps(index).encode()))
    archive.put("oci-layout", io.BytesIO(b'{"imageLayoutVersion": "1.0.0"}'))


def main():
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    command = words[at + 1:] or ["/bin/sh"]
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("out")
    parser.add_argument("--name", action="append", required=True)
    parser.add_argument("--root")
    parser.add_argument("--package", action="append", default=[])
    parser.add_argument("--without", action="append", default=[])
    options = parser.parse_args(words[:at])
    files = Files()
    for package in options.package:
        files.add_package(package, LEFT_OUT + options.without)
    # What is in the folder wins over what a package has, and may be linked to libraries too.
    if options.root:
        files.add_folder(options.root)
    files.add_libraries()
    folder = os.path.dirname(os.path.abspath(options.out))
    with tempfile.TemporaryFile(dir=folder) as layer:
        write_layer(layer, files.paths)
        part = options.out + ".part"
        with tarfile.open(part, "w") as out:
            write_image(out, options.name, command, layer)
        os.rename(part, options.out)


if __name__ == "__main__":
    main()
