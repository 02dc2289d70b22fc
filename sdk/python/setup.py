# SPDX-License-Identifier: Apache-2.0
"""Builds the package `myelin`: pip install ./sdk/python

The extension is libmyelin (../c) and a type around it. Where there is no compiler, or no header of
Python, the package is installed without it and logs by its Python code. A source distribution holds
a copy of libmyelin, since the folder beside this one is not part of it.

    MYELIN_PURE_PYTHON=1   do not even try to compile
"""
import os
import shutil

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = os.path.dirname(os.path.abspath(__file__))
BESIDE = os.path.join(HERE, os.pardir, "c")
COPY = os.path.join("myelin", "_c")
LIBRARY = ("myelin.c", "myelin.h", "myelin_text.h")


class WithLibrary(build_ext):
    """Compiles libmyelin from where it is: the folder beside, or the copy in a distribution."""

    def build_extension(self, extension):
        folder = BESIDE if os.path.exists(os.path.join(BESIDE, "myelin.c")) else os.path.join(HERE, COPY)
        source = os.path.relpath(os.path.join(folder, "myelin.c"), HERE)
        # Compiled into the build folder under a name of its own: the object must not land beside its source.
        os.makedirs(self.build_temp, exist_ok=True)
        copied = os.path.join(self.build_temp, "libmyelin.c")
        shutil.copyfile(os.path.join(HERE, source), copied)
        extension.sources = ["myelin/_native.c", copied]
        extension.include_dirs = [folder]
        build_ext.build_extension(self, extension)


class WithCopy(sdist):
    def make_release_tree(self, base_dir, files):
        sdist.make_release_tree(self, base_dir, files)
        os.makedirs(os.path.join(base_dir, COPY), exist_ok=True)
        for name in LIBRARY:
            kept = os.path.join(COPY, name)
            source = os.path.join(BESIDE, name)
            shutil.copyfile(source if os.path.exists(source) else kept, os.path.join(base_dir, COPY, name))


def version():
    with open(os.path.join(HERE, "myelin", "__init__.py"), encoding="utf-8") as file:
        line = next(line for line in file if line.startswith("__version__"))
    return line.split('"')[1]


native = Extension(
    "myelin._native",
    ["myelin/_native.c"],
    extra_compile_args=["-std=gnu11", "-O2", "-fvisibility=hidden"],
    optional=True,
)

setup(
    name="myelin",
    version=version(),
    description="Logs the metrics of a training at the speed of memory",
    license="Apache-2.0",
    python_requires=">=3.7",
    packages=["myelin"],
    package_data={"myelin": ["py.typed"]},
    ext_modules=[] if os.environ.get("MYELIN_PURE_PYTHON") else [native],
    cmdclass={"build_ext": WithLibrary, "sdist": WithCopy},
    zip_safe=False,
)
