// SPDX-License-Identifier: MIT
// Multiplies each f32 row of n channels by a matrix, as llama.cpp does for a Hadamard transform.
// One invocation computes four columns of four rows; caches serve the data that invocations share.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "interface.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint n = 64;  // a multiple of 4

layout(push_constant, std430) uniform PushBlock {
    uint rows;
};
// clang-format off: one line for each binding
layout(set = 0, binding = binding_q_in, std430) readonly buffer In {
    vec4 x[];
};
layout(set = 0, binding = binding_q_out, std430) writeonly buffer Out {
    vec4 y[];
};
layout(set = 0, binding = binding_table, std430) readonly buffer Matrix {
    vec4 matrix[];
};
// clang-format on

void main() {
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint at = group * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    const uint quads = n / 4, column = at % quads, first_row = at / quads * 4;
    if (first_row < rows) {
        const uvec4 row = min(uvec4(first_row) + uvec4(0, 1, 2, 3), uvec4(rows - 1));
        vec4 sum0 = vec4(0), sum1 = vec4(0), sum2 = vec4(0), sum3 = vec4(0);
        for (uint quad = 0; quad < quads; ++quad) {
            const mat4 factors = mat4(
                matrix[(4 * quad + 0) * quads + column], matrix[(4 * quad + 1) * quads + column],
                matrix[(4 * quad + 2) * quads + column], matrix[(4 * quad + 3) * quads + column]);
            sum0 += factors * x[row.x * quads + quad];
            sum1 += factors * x[row.y * quads + quad];
            sum2 += factors * x[row.z * quads + quad];
            sum3 += factors * x[row.w * quads + quad];
        }
        y[row.x * quads + column] = sum0;
        y[row.y * quads + column] = sum1;
        y[row.z * quads + column] = sum2;
        y[row.w * quads + column] = sum3;
    }
}
