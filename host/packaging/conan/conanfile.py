# SPDX-License-Identifier: MIT
"""A Conan 2 recipe of the source archive that lies beside this file: no source is downloaded."""

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, unzip


class Vkrope(ConanFile):
    name = "vkrope"
    version = "0.1.0"
    description = "Rotary position embedding for every Vulkan GPU"
    license = "MIT"
    settings = "os", "arch", "compiler", "build_type"
    options = {part: [True, False] for part in ("c", "model", "runtime", "tools")}
    default_options = {"c": False, "model": True, "runtime": True, "tools": False}

    @property
    def _archive(self):
        return f"vkrope-{self.version}.tar.gz"

    def export_sources(self):
        copy(self, self._archive, self.recipe_folder, self.export_sources_folder)

    def validate(self):
        check_min_cppstd(self, 20)
        for part in ("c", "tools"):
            if self.options.get_safe(part) and not (self.options.model and self.options.runtime):
                raise ConanInvalidConfiguration(f"{part} needs model and runtime")

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("vulkan-headers/1.3.239.0", transitive_headers=True)
        self.requires("spirv-headers/1.3.239.0")
        if self.options.model:
            self.requires("nlohmann_json/3.11.2")
        if self.options.runtime:
            self.requires("vulkan-memory-allocator/3.0.1")
        if self.options.tools:
            self.requires("cli11/2.3.2")
            self.requires("fmt/9.1.0")

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25]")
        self.tool_requires("glslang/1.3.239.0")

    def source(self):
        unzip(self, self._archive, strip_root=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("c", "model", "runtime", "tools"):
            toolchain.variables[f"VKROPE_{part.upper()}"] = bool(self.options.get_safe(part))
        for part in ("tests", "bench"):
            toolchain.variables[f"VKROPE_{part.upper()}"] = False
        toolchain.variables["VKROPE_INSTALL"] = True
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, f"{self.package_folder}/licenses")
        CMake(self).install()

    def package_info(self):
        # The library's own package files say more than generated ones could.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/vkrope"]
