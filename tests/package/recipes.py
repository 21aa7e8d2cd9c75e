# SPDX-License-Identifier: MIT
"""Loads the Conan recipe with a stand-in for Conan, and prints what it asks for: a line
"OPTIONS: requirement ... | VARIABLE=VALUE ..." for each choice of options, or "OPTIONS: refused".
"""

import importlib.util
import itertools
import sys
import types


class Refused(Exception):
    pass


class Options(dict):
    def __getattr__(self, name):
        return self[name]

    get_safe = dict.get


class ConanFile:
    pass


class CMakeToolchain:
    last = None

    def __init__(self, recipe):
        self.variables = {}
        CMakeToolchain.last = self

    def generate(self):
        pass


def stand_in(name, **members):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)


def nothing(*arguments, **named):
    return types.SimpleNamespace(generate=lambda: None)


stand_in("conan", ConanFile=ConanFile)
stand_in("conan.errors", ConanInvalidConfiguration=Refused)
stand_in("conan.tools")
stand_in("conan.tools.build", check_min_cppstd=nothing)
stand_in("conan.tools.cmake", CMake=nothing, CMakeDeps=nothing, CMakeToolchain=CMakeToolchain,
         cmake_layout=nothing)  # fmt: skip
unpacked = []
stand_in("conan.tools.files", copy=nothing,
         unzip=lambda recipe, archive, strip_root: unpacked.append(archive))  # fmt: skip

spec = importlib.util.spec_from_file_location("conanfile", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
recipe_class = module.Vkrope
print("version", recipe_class.version)
recipe_class().source()
print("archive", *unpacked)
names = sorted(recipe_class.options)
for chosen in itertools.product([False, True], repeat=len(names)):
    recipe = recipe_class()
    recipe.options = Options(zip(names, chosen))
    label = " ".join(name for name in names if recipe.options[name]) or "nothing"
    wanted = []
    recipe.requires = recipe.tool_requires = lambda what, **named: wanted.append(what.split("/")[0])
    try:
        recipe.validate()
    except Refused:
        print(f"{label}: refused")
        continue
    recipe.requirements()
    recipe.build_requirements()
    recipe.generate()
    variables = CMakeToolchain.last.variables
    values = " ".join(f"{name}={'ON' if variables[name] else 'OFF'}" for name in sorted(variables))
    print(f"{label}: {' '.join(sorted(wanted))} | {values}")
