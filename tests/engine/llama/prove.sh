#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes a Debian sid with llama.cpp's libraries, compiles this folder's program there with the form
# of vkrope to copy, and runs it as rows.sh says. The rows are printed and kept in build/llama.txt.
set -u
root=$SCRATCH/root
here=$SOURCE/tests/engine/llama
# shellcheck source=tests/package/empty_debian.sh
. "$SOURCE/tests/package/empty_debian.sh"
enter_debian sid
inside DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    g++ libggml-dev libggml0-backend-vulkan libllama-dev libvulkan-dev mesa-vulkan-drivers \
    >"$SCRATCH/apt.log" 2>&1 ||
    skip "sid does not install llama.cpp: $(tail -n 1 "$SCRATCH/apt.log")"
work=$root/llama
sh "$SOURCE/host/packaging/amalgamate.sh" "$SOURCE" "$work/vkrope" || exit 1
cp "$here"/*.?pp "$here/rows.sh" "$SOURCE"/tests/package/consumers/engine/gpu.?pp "$work/" || exit 1
inside sh -ec 'cd /llama
    g++ -std=c++17 -O1 -c vkrope/vkrope.cpp -o vkrope.o &
    g++ -std=c++20 -O1 -Wall -Wextra -I. -c ./*.cpp
    wait
    g++ ./*.o -o llama -lllama -lggml -lggml-base -lvulkan' || exit 1
inside dpkg-query -W libggml0 libllama0 mesa-vulkan-drivers
inside sh /llama/rows.sh >"$work/rows"
mkdir -p "$SOURCE/build" && LC_ALL=C sort -k2 "$work/rows" >"$SOURCE/build/llama.txt" || exit 1
# A mutant must be found. With exit status 3 llama.cpp itself does not run the model, for a reason
# that it says; the models of more than one row must run.
awk '
    { print }
    $8 != "-" && $8 != "yarn" { mutants += $1 == 1 && /layers 2/; next }
    $1 == 3 && $2 == "observe" && $3 !~ /^(llama|qwen3|gemma3)$/ &&
        /error loading|ASSERT|requires|invalid/ { skipped = skipped " " $3 "/" $4; next }
    $1 != 0 { print "FAILED"; failed = 1; next }
    $2 == "observe" { built[$4, $3]; layers += $11; bytes += $17; wrong += $19 }
    END {
        for (row in built) ++models[substr(row, 1, 3)]
        print "llama.cpp does not run:" skipped
        printf "%d architectures on the CPU, %d on Vulkan, %d layers, %d bytes in caches, " \
            "%d wrong; %d mutants found\n", models["CPU"], models["Vul"], layers, bytes, wrong,
            mutants
        exit failed || models["CPU"] < 100 || models["Vul"] < 100 || mutants != 4
    }' "$SOURCE/build/llama.txt"
