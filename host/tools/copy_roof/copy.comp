// SPDX-License-Identifier: MIT
// Copies words: the roof that the speed of a rotation of the same bytes is compared with.
#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint items =
    1;  // number of vectors that an invocation copies: 1, or a multiple of 4
layout(constant_id = 2) const uint run =
    1;  // number of adjacent vectors in a run: 1 or a multiple of 4; runs are a workgroup apart
layout(constant_id = 3) const uint width = 4;  // number of words in a vector

// clang-format off: a line for each binding
layout(push_constant, std430) uniform PushBlock {
    uint vectors;
};
layout(set = 0, binding = 0, std430) readonly buffer Source4 {
    uvec4 source4[];
};
layout(set = 0, binding = 1, std430) writeonly buffer Target4 {
    uvec4 target4[];
};
layout(set = 0, binding = 0, std430) readonly buffer Source2 {
    uvec2 source2[];
};
layout(set = 0, binding = 1, std430) writeonly buffer Target2 {
    uvec2 target2[];
};
layout(set = 0, binding = 0, std430) readonly buffer Source1 {
    uint source1[];
};
layout(set = 0, binding = 1, std430) writeonly buffer Target1 {
    uint target1[];
};
// clang-format on

// Copies four vectors at a time, with loads before stores. Past the end, copies the last vector
// again with the same value, since software devices would execute both sides of a branch.
#define COPY(Vector, source, target)                                                          \
    for (uint i = 0; i < items; i += 4) {                                                     \
        const uint at = first + i / run * size * run + i % run;                               \
        const uint a = min(at, last), b = min(at + step, last), c = min(at + 2 * step, last), \
                   d = min(at + 3 * step, last);                                              \
        if (items >= 4) {                                                                     \
            const Vector va = source[a], vb = source[b], vc = source[c], vd = source[d];      \
            target[a] = va;                                                                   \
            target[b] = vb;                                                                   \
            target[c] = vc;                                                                   \
            target[d] = vd;                                                                   \
        } else {                                                                              \
            target[a] = source[a];                                                            \
        }                                                                                     \
    }

void main() {
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint size = gl_WorkGroupSize.x,
               step = run == 1 ? size : 1;  // distance between the four vectors
    const uint first = group * size * items + gl_LocalInvocationID.x * run, last = vectors - 1;
    if (width == 4) COPY(uvec4, source4, target4)
    if (width == 2) COPY(uvec2, source2, target2)
    if (width == 1) COPY(uint, source1, target1)
}
