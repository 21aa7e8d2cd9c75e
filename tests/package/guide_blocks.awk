# SPDX-License-Identifier: MIT
# Makes sources of the code blocks of a page, and checks their #include lines. Each block of C++
# becomes the body of a function, after its #include lines and the engine's own names (my.hpp);
# blocks with the same #include lines share a file. The blocks of a page are one program, which
# links the libraries of the page's first CMake block; other CMake blocks are only saved. Blocks
# marked "cpp program" and "c program" are saved unchanged as program_PAGE.cpp and program_PAGE.c.
#   page    the name of the page     blocks  the number of blocks of C++ in the page
#   folder  the folder of the sources
function wrong(what) { print page ".md, block " n ": " what; failed = 1 }
function demands(names, header) {
    if (text ~ names && !index(includes, "<" header ">")) wrong("<" header "> is missing")
    gsub(names, "", text)
}
function judge() {
    if (!includes) wrong("it has no #include")
    demands("std::u?int[0-9]+_t", "cstdint")
    demands("std::move", "utility")
    demands("std::vector", "vector")
    if (text ~ /std::/) wrong("this test does not know which header has a name of std")
    demands("(^|[^A-Za-z_:])(vk|Vk|VK_)[A-Z]", "vulkan/vulkan.h")
}
/^```cpp$/ { inside = 1; n++; includes = text = file = ""; next }
/^```c$/ { wrong("a block of C is a whole program: \"c program\"") }
/^```cmake( program)?$/ {
    cmake = folder "/" page (cmakes++ || !blocks ? "_" cmakes ".lines" : ".cmake")
    next
}
/^```(c|cpp) program$/ { program = folder "/program_" page "." substr($1, 4); next }
/^```$/ && inside { print "return {};\n}" >file; judge(); inside = 0 }
/^```$/ { cmake = program = ""; next }
inside && !file && /^#include </ { includes = includes $0 "\n"; next }
inside && !file && /^$/ { next }
inside && !file {
    if (!(includes in batch)) {
        batch[includes] = folder "/" page "_" ++files ".cpp"
        printf "%s\n#include \"my.hpp\"\n", includes >batch[includes]
    }
    file = batch[includes]
    print "vkrope::Status " page "_" n "() {" >file
}
inside { print >file; sub(/\/\/.*/, ""); text = text $0 "\n" }
cmake ~ /\.cmake$/ { sub(/\(app /, "(guide_" page " ") }
cmake { print >cmake }
program { print >program }
# A kernel with which a block records must be created on the same page.
inside && match($0, /my::[a-z_]*kernel\.get/) { recorded[substr($0, RSTART, RLENGTH - 4)] = n }
inside && match($0, /my::[a-z_]*kernel( = |\.reset\([a-z])/) {
    name = substr($0, RSTART, RLENGTH)
    sub(/( = |\.reset\(.)$/, "", name)
    created[name] = 1
}
END {
    for (name in recorded)
        if (!(name in created)) { n = recorded[name]; wrong("nothing creates " name) }
    exit failed
}
