// SPDX-License-Identifier: MIT
// Breaks the arithmetic rules, so that the test can see that its check works.
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, std430) buffer Values { vec4 x, y; };

void main() {
    y = x * y - x.wzyx * sin(x) / y;
    y.x = dot(x, y);
}
