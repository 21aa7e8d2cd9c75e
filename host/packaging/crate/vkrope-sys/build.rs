// SPDX-License-Identifier: MIT
// Compiles vkrope.cpp, which needs Vulkan's headers: the system's or those of VULKAN_SDK.
use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=vkrope");
    println!("cargo:rerun-if-env-changed=VULKAN_SDK");
    let mut build = cc::Build::new();
    build.cpp(true).file("vkrope/vkrope.cpp");
    if let Some(sdk) = std::env::var_os("VULKAN_SDK") {
        build.include(Path::new(&sdk).join("include"));
    }
    let msvc = build.get_compiler().is_like_msvc();
    build.flag(if msvc { "/std:c++17" } else { "-std=c++17" });
    if msvc {
        build.flag("/EHsc");
    }
    build.compile("vkrope");
}
