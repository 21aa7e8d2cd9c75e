// SPDX-License-Identifier: MIT
// Breaks the arithmetic rules, so that the test can see that its check works.
#version 450
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, std430) buffer Values {
    vec4 x, y;
    uint count;
};

void main() {
    y = x * y - x.wzyx * sin(x) / y;
    y.x = dot(x, y);
    y.y = cos(y.y) + pow(y.z, y.w) + exp2(y.x) + fma(y.x, y.y, y.z);
    y.z = unpackHalf2x16(packHalf2x16(y.zw)).x;
    y.w = float(double(y.w));
    y.w += uintBitsToFloat(
        atomicLoad(count, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire));
}
