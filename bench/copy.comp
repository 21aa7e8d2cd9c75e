// SPDX-License-Identifier: MIT
// Copies words: the roof that a rotation of the same bytes is held against.
#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint items = 1;  // vectors an invocation copies: 1, or a multiple of 4
layout(constant_id = 2) const uint run = 1;    // of them side by side, 1 or a multiple of 4; each run lies one workgroup after the last
layout(constant_id = 3) const uint width = 4;  // words of a vector

layout(push_constant, std430) uniform PushBlock { uint vectors; };
layout(set = 0, binding = 0, std430) readonly buffer Source4 { uvec4 source4[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Target4 { uvec4 target4[]; };
layout(set = 0, binding = 0, std430) readonly buffer Source2 { uvec2 source2[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Target2 { uvec2 target2[]; };
layout(set = 0, binding = 0, std430) readonly buffer Source1 { uint source1[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Target1 { uint target1[]; };

// Four at a time, loads before stores, where they are all there.
#define COPY(Vector, source, target)                                                                                          \
    for (uint i = 0; i < items; i += 4) {                                                                                     \
        const uint at = first + i / run * size * run + i % run;                                                               \
        if (items >= 4 && at + 3 * step < vectors) {                                                                          \
            const Vector v0 = source[at], v1 = source[at + step], v2 = source[at + 2 * step], v3 = source[at + 3 * step];     \
            target[at] = v0;                                                                                                  \
            target[at + step] = v1;                                                                                           \
            target[at + 2 * step] = v2;                                                                                       \
            target[at + 3 * step] = v3;                                                                                       \
        } else {                                                                                                              \
            for (uint j = 0; j < min(items, 4); ++j) {                                                                        \
                if (at + j * step < vectors) target[at + j * step] = source[at + j * step];                                   \
            }                                                                                                                 \
        }                                                                                                                     \
    }

void main() {
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint size = gl_WorkGroupSize.x, step = run == 1 ? size : 1;  // from one to the next of four
    const uint first = group * size * items + gl_LocalInvocationID.x * run;
    if (width == 4) COPY(uvec4, source4, target4)
    if (width == 2) COPY(uvec2, source2, target2)
    if (width == 1) COPY(uint, source1, target1)
}
