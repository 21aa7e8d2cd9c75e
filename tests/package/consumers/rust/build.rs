// SPDX-License-Identifier: MIT
// Asks pkg-config where vkrope is. PKG_CONFIG_PATH names any prefix that is not the system's.
use std::process::Command;

fn main() {
    let answer = Command::new("pkg-config")
        .args(["--libs", "vkrope"])
        .output()
        .expect("pkg-config cannot be run");
    if !answer.status.success() {
        panic!("{}", String::from_utf8_lossy(&answer.stderr));
    }
    for flag in String::from_utf8_lossy(&answer.stdout).split_whitespace() {
        if let Some(folder) = flag.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if let Some(library) = flag.strip_prefix("-l") {
            println!("cargo:rustc-link-lib=dylib={library}");
        }
    }
}
