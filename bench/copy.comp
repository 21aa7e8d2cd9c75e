// SPDX-License-Identifier: MIT
// Copies 16 bytes at a time: the roof that a rotation of the same bytes is held against.
#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint items = 1;            // vectors an invocation copies
layout(constant_id = 2) const bool consecutive = false;  // side by side, or one workgroup apart

layout(push_constant, std430) uniform PushBlock { uint vectors; };
layout(set = 0, binding = 0, std430) readonly buffer Source { uvec4 source[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Target { uvec4 target[]; };

void main() {
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint size = gl_WorkGroupSize.x;
    const uint first = consecutive ? (group * size + gl_LocalInvocationID.x) * items : group * size * items + gl_LocalInvocationID.x;
    for (uint i = 0; i < items; ++i) {
        const uint at = first + i * (consecutive ? 1 : size);
        if (at < vectors) target[at] = source[at];
    }
}
