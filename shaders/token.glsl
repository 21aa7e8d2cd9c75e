// SPDX-License-Identifier: MIT
// Finds the angles of a token and the cache rows of its K and V, and counts tokens out of range.
// Needs interface.h, angles.glsl, and the constants chunk_lanes, head_lanes, rotary_dim, axes,
// section_order, angles, phase, head_groups, positions, scatter, gather, k_keeps, counter and
// second_parameters (VKROPE_CONSTANTS). Declares no binding, push constant or workgroup size.
// Define four macros:
//
//   VKROPE_PUSH                the name of a Push
//   VKROPE_ID_WORD(index)      the word `index` of the positions
//   VKROPE_SLOT_WORD(index)    the word `index` of the slots
//   VKROPE_SOURCE_WORD(index)  the word `index` of the slots that are read
#ifndef VKROPE_TOKEN_GLSL
#define VKROPE_TOKEN_GLSL

#ifndef VKROPE_PUSH
#error "token.glsl: define VKROPE_PUSH"
#endif
#ifndef VKROPE_ID_WORD
#error "token.glsl: define VKROPE_ID_WORD(index)"
#endif
#ifndef VKROPE_SLOT_WORD
#error "token.glsl: define VKROPE_SLOT_WORD(index)"
#endif
#ifndef VKROPE_SOURCE_WORD
#error "token.glsl: define VKROPE_SOURCE_WORD(index)"
#endif
#ifndef VKROPE_ANGLES_GLSL
#error "token.glsl: include interface.h and angles.glsl first"
#endif

// Byte `which`, a constant, of Push::offsets.
#define VKROPE_OFFSET(which) ((VKROPE_PUSH.offsets[(which) / 4] >> (8 * ((which) % 4))) & 0xffu)

// Lanes of a token in a workgroup.
const uint token_lanes = chunk_lanes * head_lanes;

bool vkrope_has(const uint flag) {
    return (VKROPE_PUSH.flags & flag) != 0;
}

// 1 if an angle needs the signed position, not its magnitude, since the angle at -position is not
// the negated angle, or angles are added. (glslang turns || in a constant into control flow.)
const uint vkrope_signed_positions = phase | (head_groups == 1 ? 0 : 1) |
                                     (section_order == sections_sum ? 1 : 0);

// The argument of an angle: the position, its magnitude or a row; and the sign bit to flip in sin.
struct Angle {
    uint row, sign;
};

struct Token {
    bool covered;     // the angle table covers the position on every axis
    Angle angle;      // with one axis
    uint head_group;  // group of heads that share frequencies
    uint page, line;  // of the cache rows of K and V
    bool stored;      // this dispatch stores its K and V
    bool slot_outside;
};

// Angles of several axes. They are not in Token, because a structure with an array is copied whole.
// All indices are literals, so that the array needs no memory.
Angle vkrope_axis_angles[max_axes];

// With two parameter sets: floats from the start of the parameters to the set of the token.
uint vkrope_parameter_set;

// With gather: the cache rows that K and V come from.
uint vkrope_source_page, vkrope_source_line;
// True if the rotation changes no row of the token: it leaves the rows alone, or all angles are 0.
bool vkrope_still;

Angle vkrope_axis_angle(const uint axis) {
    Angle angle = vkrope_axis_angles[0];
    if (axis == 1) angle = vkrope_axis_angles[1];
    if (axes > 2) {
        if (axis == 2) angle = vkrope_axis_angles[2];
    }
    if (axes > 3) {
        if (axis == 3) angle = vkrope_axis_angles[3];
    }
    if (axes > 4) {
        if (axis == 4) angle = vkrope_axis_angles[4];
    }
    if (axes > 5) {
        if (axis == 5) angle = vkrope_axis_angles[5];
    }
    if (axes > 6) {
        if (axis == 6) angle = vkrope_axis_angles[6];
    }
    if (axes > 7) {
        if (axis == 7) angle = vkrope_axis_angles[7];
    }
    return angle;
}

// Returns the angle of a token on an axis. Sets `covered` to false if the table does not cover the
// token's position.
Angle vkrope_angle_at(const uint index, const uint z, const uint axis, inout bool covered) {
    uint low = VKROPE_PUSH.first_position + z * VKROPE_PUSH.position_z + index;
    bool is_int32 = true;
    if (positions == positions_ids) {
        const uint at = VKROPE_OFFSET(offset_ids) + z * VKROPE_PUSH_IDS_Z +
                        axis * VKROPE_PUSH.ids_axis + index * VKROPE_PUSH_IDS_TOKEN;
        low = VKROPE_ID_WORD(at);
        if (vkrope_has(flag_ids_64)) is_int32 = VKROPE_ID_WORD(at + 1) == 0u - (low >> 31);
    }
    Angle angle;
    angle.row = angles < angles_cos_sin_cache ? vkrope_magnitude(int(low)) : low;
    angle.sign = ((VKROPE_PUSH.flags & flag_inverse) << 31) ^
                 (angles < angles_cos_sin_cache ? low & 0x80000000u : 0u);
    covered = covered && is_int32 && angle.row < VKROPE_PUSH.table_rows;
    if (vkrope_signed_positions != 0) {
        const bool below_0 = (low >> 31) != 0;
        angle.sign = (VKROPE_PUSH.flags & flag_inverse) << 31;
        if (angles == angles_computed || angles == angles_factored)
            angle.row = low;
        else if (below_0)
            angle.row += VKROPE_PUSH.table_rows - 1;
    }
    return angle;
}

// Finds the cache rows of K and V. Needs a K or V, because otherwise there may be no slots.
void vkrope_scatter(const uint index, const uint z, inout Token token) {
    const bool wide_slots = vkrope_has(flag_slot_mapping_64);
    const uint at = VKROPE_OFFSET(offset_slots) + z * VKROPE_PUSH.slot_z +
                    (wide_slots ? 2 * index : index);
    const uint low = VKROPE_SLOT_WORD(at);
    const uint high = wide_slots ? VKROPE_SLOT_WORD(at + 1) : 0u - (low >> 31);
    const uint slot = low - VKROPE_PUSH.slot_first;
    // Below slot_first the difference wraps to 2^31 or more, which is more than any cache has.
    token.stored = high == 0 && slot < VKROPE_PUSH.slot_rows;
    token.slot_outside = (high != 0 || low >= VKROPE_PUSH.slot_first + VKROPE_PUSH.slot_rows) &&
                         (high & low) != ~0u;
    token.page = slot / VKROPE_PUSH.page_size;
    token.line = slot % VKROPE_PUSH.page_size;
}

// Sets the angles of a token.
void vkrope_locate(const uint index, const uint z, inout Token token) {
    if (axes == 0) {
        token.angle = vkrope_angle_at(index, z, 0, token.covered);
    } else {
        vkrope_axis_angles[0] = vkrope_angle_at(index, z, 0, token.covered);
        vkrope_axis_angles[1] = vkrope_angle_at(index, z, 1, token.covered);
        if (axes > 2) vkrope_axis_angles[2] = vkrope_angle_at(index, z, 2, token.covered);
        if (axes > 3) vkrope_axis_angles[3] = vkrope_angle_at(index, z, 3, token.covered);
        if (axes > 4) vkrope_axis_angles[4] = vkrope_angle_at(index, z, 4, token.covered);
        if (axes > 5) vkrope_axis_angles[5] = vkrope_angle_at(index, z, 5, token.covered);
        if (axes > 6) vkrope_axis_angles[6] = vkrope_angle_at(index, z, 6, token.covered);
        if (axes > 7) vkrope_axis_angles[7] = vkrope_angle_at(index, z, 7, token.covered);
    }
}

// Finds the cache rows that K and V come from. A token has none if this dispatch does not have the
// row.
void vkrope_gather(const uint index, const uint z, inout Token token) {
    const bool wide_slots = vkrope_has(flag_slot_mapping_64);
    const uint step = wide_slots ? 2 * index : index;
    const uint at = VKROPE_OFFSET(offset_source) + z * VKROPE_PUSH_SOURCE_Z + step;
    const uint low = VKROPE_SOURCE_WORD(at);
    const uint high = wide_slots ? VKROPE_SOURCE_WORD(at + 1) : 0u - (low >> 31);
    const uint slot = low - VKROPE_PUSH_SOURCE_FIRST;
    token.stored = token.stored && high == 0 && slot < VKROPE_PUSH_SOURCE_ROWS;
    bool skipped = (high & low) == ~0u;
    if (scatter != 0) {
        const uint to = VKROPE_OFFSET(offset_slots) + z * VKROPE_PUSH.slot_z + step;
        uint both = VKROPE_SLOT_WORD(to);
        if (wide_slots) both &= VKROPE_SLOT_WORD(to + 1);
        skipped = skipped || both == ~0u;
    }
    const bool outside = high != 0 || low >= VKROPE_PUSH_SOURCE_FIRST + VKROPE_PUSH_SOURCE_ROWS;
    token.slot_outside = !skipped && (token.slot_outside || outside);
    vkrope_source_page = slot / VKROPE_PUSH.page_size;
    vkrope_source_line = slot % VKROPE_PUSH.page_size;
}

// Sets vkrope_still.
void vkrope_find_still(const Token token) {
    bool still = token.angle.row == 0;
    if (axes != 0) still = (vkrope_axis_angles[0].row | vkrope_axis_angles[1].row) == 0;
    if (axes > 2) still = still && vkrope_axis_angles[2].row == 0;
    if (axes > 3) still = still && vkrope_axis_angles[3].row == 0;
    if (axes > 4) still = still && vkrope_axis_angles[4].row == 0;
    if (axes > 5) still = still && vkrope_axis_angles[5].row == 0;
    if (axes > 6) still = still && vkrope_axis_angles[6].row == 0;
    if (axes > 7) still = still && vkrope_axis_angles[7].row == 0;
    vkrope_still = !token.covered || (still && vkrope_has(flag_keeps));
}

Token vkrope_token(const uint index, const uint z) {
    Token token;
    token.covered = true;
    if (rotary_dim != 0 || counter != 0) vkrope_locate(index, z, token);
    token.head_group = 0;
    if (head_groups != 1) {
        token.head_group = VKROPE_PUSH_FIRST_HEAD_GROUP;
        if (vkrope_has(flag_z_is_group)) token.head_group += z;
    }
    token.page = token.line = 0;
    token.stored = true;
    token.slot_outside = false;
    if (scatter != 0) {
        if ((VKROPE_PUSH.heads >> 16) != 0) vkrope_scatter(index, z, token);
    }
    if (second_parameters != 0)
        vkrope_parameter_set = index < VKROPE_PUSH.first_set_tokens ? 0 : second_parameters;
    return token;
}

// Returns the token, and finds what kernels that move keys need. Kernels without ops do not call
// this function, so that they have no code for it.
Token vkrope_token_of_cache(const uint index, const uint z) {
    Token token = vkrope_token(index, z);
    if (gather != 0) vkrope_gather(index, z, token);
    if (k_keeps != 0) {
        if (rotary_dim != 0) vkrope_find_still(token);
    }
    return token;
}

// Returns true if this dispatch counts the token as out of range.
bool vkrope_counts(const Token token, const uint z) {
    const bool positions_count = vkrope_has(flag_count_positions),
               slots_count = vkrope_has(flag_count_slots);
    const bool shared_z = vkrope_has(flag_z_is_group) && z != 0;
    const bool position_counts = positions_count && !token.covered;
    return !shared_z && (position_counts ||
                         (slots_count && token.slot_outside && (positions_count || token.covered)));
}

#endif
