// SPDX-License-Identifier: MIT
// Adds sums that the lanes of a workgroup share, in the tree order of norm.glsl. Each sum has two
// parts, of values and of scaled values, or only the first if values cannot overflow. Declares no
// binding, push constant or workgroup size. Define one macro:
//
//   VKROPE_EXCHANGED(index)    the parts of the shared sums: float
//
// Lanes add groups of eight sums, in stages with a barrier after each stage, until at most sixteen
// sums are left. Then every lane adds all of these. Thus no lane reads many sums, or keeps sums
// that wait for others.
#ifndef VKROPE_SHARED_SUMS_GLSL
#define VKROPE_SHARED_SUMS_GLSL

#ifndef VKROPE_EXCHANGED
#error "shared_sums.glsl: define VKROPE_EXCHANGED(index)"
#endif

// Number of stages of a tree. The stages leave 2, 3 or 4 levels, or all levels if there are at most
// 4.
#define VKROPE_STAGES(levels) ((levels) <= 4 ? 0 : ((levels)-2) / 3)

void vkrope_exchange(const uint parts, const uint index, const vec2 sum) {
    VKROPE_EXCHANGED(parts * index) = sum.x;
    if (parts == 2) VKROPE_EXCHANGED(parts * index + 1) = sum.y;
}

// A part of the sums of a tree: `count` sums of `parts` parts, `stride` apart.
struct SharedSums {
    uint parts, at, stride, count;
};

// Returns sum `index`, or +0 beyond the last sum. If a sum has one part, both components are equal.
vec2 vkrope_shared_one(const SharedSums sums, const uint index) {
    const uint at = sums.parts * (sums.at + min(index, sums.count - 1u) * sums.stride);
    vec2 sum = vec2(VKROPE_EXCHANGED(at));
    if (sums.parts == 2) sum.y = VKROPE_EXCHANGED(at + 1);
    return index < sums.count ? sum : vec2(0);
}
vec2 vkrope_shared_two(const SharedSums sums, const uint first) {
    precise vec2 sum = vkrope_shared_one(sums, first) + vkrope_shared_one(sums, first + 1u);
    return sum;
}
vec2 vkrope_shared_four(const SharedSums sums, const uint first) {
    precise vec2 sum = vkrope_shared_two(sums, first) + vkrope_shared_two(sums, first + 2u);
    return sum;
}
vec2 vkrope_shared_eight(const SharedSums sums, const uint first) {
    precise vec2 sum = vkrope_shared_four(sums, first) + vkrope_shared_four(sums, first + 4u);
    return sum;
}

// Adds the sums that the stages have left. `levels`, a constant, counts the levels of the whole
// tree.
vec2 vkrope_shared_rest(const uint levels, const SharedSums sums) {
    const uint rest = levels - 3 * VKROPE_STAGES(levels);
    vec2 sum;
    if (rest == 0) {
        sum = vkrope_shared_one(sums, 0);
    } else if (rest == 1) {
        sum = vkrope_shared_two(sums, 0);
    } else if (rest == 2) {
        sum = vkrope_shared_four(sums, 0);
    } else if (rest == 3) {
        sum = vkrope_shared_eight(sums, 0);
    } else {
        precise vec2 both = vkrope_shared_eight(sums, 0) + vkrope_shared_eight(sums, 8);
        sum = both;
    }
    return sum;
}

// Returns the sums of a tree over `count` sums from sum `at` on, before stage `stage`.
SharedSums vkrope_shared_sums(const uint parts, const uint at, const uint count, const uint stage) {
    const uint stride = 1u << (3 * stage);
    return SharedSums(parts, at, stride, (count + stride - 1u) >> (3 * stage));
}

// Performs one stage: lane `lane` of `lanes` adds groups of eight sums, and replaces the first sum
// of each group by the result.
void vkrope_shared_stage(const SharedSums sums, const uint lane, const uint lanes) {
    for (uint first = 8u * lane; first < sums.count; first += 8u * lanes) {
        const uint at = sums.at + first * sums.stride;
        const uint count = sums.count % 8u == 0 ? 8u : sums.count - first;
        const SharedSums eight = SharedSums(sums.parts, at, sums.stride, count);
        vkrope_exchange(sums.parts, at, vkrope_shared_eight(eight, 0));
    }
}

#endif
