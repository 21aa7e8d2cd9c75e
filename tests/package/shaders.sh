#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that other shaders can use the installed .glsl files: all files are installed, every branch
# on a macro compiles with the prefix alone, and a missing macro or file is an #error that names it.
# Also checks that CMake and awk pack a module to the same bytes.
#
# GLSLANG  the compiler of the build
set -eu
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH"
"$CMAKE" --install "$BUILD" --prefix "$SCRATCH/installed" >"$SCRATCH/install.log"
installed=$SCRATCH/installed/share/vkrope/shaders
failed=0
wrong() { echo "$*"; failed=1; }

for file in "$SOURCE"/shaders/*.glsl "$SOURCE/shaders/interface.h"; do
    [ -e "$installed/$(basename "$file")" ] || wrong "$(basename "$file") is not installed"
done

"$CMAKE" -DWITHOUT_AWK=ON "-DINPUT=$BUILD/spirv/positions.spv" "-DOUTPUT=$SCRATCH/by_cmake.inc" \
    -P "$SOURCE/shaders/embed.cmake"
cmp "$SCRATCH/by_cmake.inc" "$BUILD/spirv/positions.inc" ||
    wrong 'embed.cmake packs a module to other bytes than embed.awk'

# compile NAME: compiles the shader on standard input, with the prefix as the only include folder.
compile() {
    cat >"$SCRATCH/$1.comp"
    "$GLSLANG" --quiet --target-env vulkan1.1 -I"$installed" -S comp -o "$SCRATCH/$1.spv" \
        "$SCRATCH/$1.comp" >"$SCRATCH/$1.log" 2>&1
}
# shader NAME MACROS BODY: compiles a shader that includes `files`.
files='interface.h element.glsl pairing.glsl turns.glsl angles.glsl'
shader() {
    {
        echo '#version 450'
        echo '#extension GL_GOOGLE_include_directive : require'
        echo '#extension GL_EXT_samplerless_texture_functions : require'
        echo '#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require'
        echo 'layout(local_size_x = 64) in;'
        echo 'layout(set = 0, binding = 0) buffer Values { uvec4 words[]; };'
        echo 'layout(set = 0, binding = 1) uniform texture2D their_texture;'
        echo 'layout(set = 0, binding = 2) readonly buffer Cos { uint their_cos[]; };'
        echo 'layout(set = 0, binding = 3) readonly buffer Sin { uint their_sin[]; };'
        echo 'layout(set = 0, binding = 4, std140) uniform Turns { uvec4 their_turns[64]; };'
        echo "$2"
        for file in $files; do echo "#include \"$file\""; done
        # All shaders share this code, which rotates a unit of 8 halves or 4 floats by c and s.
        cat <<'END'
void turn_unit(uint at, uint element, Unit c, Unit s) {
    const uint n = element == element_f32 ? 4 : 8;
    const uvec2 channels = vkrope_pair_channels(pairing_interleaved, 128, n, at);
    Unit x0, x1, y0, y1, a, b;
    vkrope_to_pairs(pairing_interleaved, n,
                    vkrope_decode(element, Words(words[channels.x / n], uvec4(0))),
                    vkrope_decode(element, Words(words[channels.y / n], uvec4(0))), x0, x1);
    vkrope_rotate(x0, x1, vkrope_scale(c, 0.5), vkrope_flip(s, at << 31), y0, y1);
    vkrope_from_pairs(pairing_interleaved, n, y0, y1, a, b);
    words[channels.x / n] = vkrope_encode(element, a).a;
    words[channels.y / n] = vkrope_encode(element, b).a;
}
void main() {
    const uint at = gl_GlobalInvocationID.x, row = vkrope_magnitude(int(at));
    Unit c, s;
END
        echo "$3"
        echo '    turn_unit(at, element_f32, c, s); turn_unit(at, element_f16, c, s); turn_unit(at, element_bf16, c, s);'
        echo '}'
    } | compile "$1"
}
# must KIND NAME MACROS BODY: checks that a shader of this kind compiles.
must() {
    "$@" || { wrong "$2 does not compile:" && cat "$SCRATCH/$2.log"; }
}
compiles() { must shader "$@"; }
# must_not WORDS KIND NAME MACROS BODY: checks that it does not, and that the compiler says WORDS.
must_not() {
    says=$1
    shift
    ! "$@" || wrong "$2 compiles"
    grep -qF "$says" "$SCRATCH/$2.log" || { wrong "$2: the compiler does not say '$says':" &&
        cat "$SCRATCH/$2.log"; }
}
# refuses WORDS NAME MACROS BODY
refuses() {
    refused=$1
    shift
    must_not "$refused" shader "$@"
}

texture='#define VKROPE_ANGLE_TEXTURE their_texture'
words='#define VKROPE_ANGLE_WORD(index) their_cos[index]'
apart='#define VKROPE_SIN_WORD(index) their_sin[index]'
turns='#define VKROPE_TURN_WORDS(index) their_turns[index]'
compiles direct_texture "$texture" 'vkrope_texture_angles(row, at, 8, 11, 32, c, s);'
compiles factored_texture "$texture" 'vkrope_factored_angles(row, 131072, at, 8, 11, 32, c, s);'
compiles phased_texture "$texture" 'vkrope_phased_angles(at, 131072, at, 8, 11, 32, c, s);'
compiles two_rows "$texture" 'vkrope_summed_angles(1, at << 31, row, at, 8, 11, 32, c, s);'
compiles buffer "$words" 'vkrope_buffer_angles(row * 128, at, 8, c, s);'
quads='#define VKROPE_ANGLE_QUAD(index) words[index]
#define VKROPE_ANGLE_QUADS true'
compiles buffer_of_quads "$words
$quads" 'vkrope_buffer_angles(row * 128, at, 8, c, s);'
compiles buffers_apart "$words
$apart" 'vkrope_angle_apart(element_bf16, 0, 0, at, c, s);'
compiles computed "$turns" 'vkrope_computed_angles(row, at, 8, c, s);'
# The sum of three axes and a phase.
compiles sum "$turns" '
    VkropeTurns sum = VkropeTurns(uvec4(0), uvec4(0), uvec4(0), uvec4(0));
    for (uint axis = 0; axis < 3; ++axis)
        vkrope_add_axis(turn_header_vec4s + 8 * axis, at + axis, 0, 8, sum);
    vkrope_add_axis(turn_header_vec4s + 24, 1, 0, 8, sum);
    vkrope_turned_angles(sum, 8, c, s);'
# Turns that the caller computes, and a pair with an angle for each channel.
compiles channels "$turns" '
    uvec4 low = uvec4(0), high = uvec4(at);
    vkrope_add_turns(uvec4(1), uvec4(2), at, low, high);
    Unit c1 = Unit(vec4(0), vec4(0)), s1 = c1, y0, y1;
    c = s = c1;
    vkrope_cos_sin(high, vkrope_turn_factor(), c.a, s.a);
    vkrope_cos_sin(low, vkrope_turn_factor(), c1.a, s1.a);
    vkrope_rotate_channels(c, s, c, s, c1, s1, y0, y1);
    c = y0;
    s = y1;'
compiles rare_branches "$turns
#define VKROPE_RARE_BRANCHES true" 'vkrope_computed_angles(row, at, 8, c, s);'
for conversion in integer normals native; do
    compiles "conversion_$conversion" "$turns
#define VKROPE_CONVERSION conversion_$conversion" 'vkrope_computed_angles(row, at, 8, c, s);'
done
compiles everything "$texture
$words
$apart
$turns" 'vkrope_factored_angles(row, 131072, at, 8, 11, 32, c, s); vkrope_buffer_angles(row * 128, at, 8, c, s); vkrope_computed_angles(row, at, 8, c, s);'


# A whole tensor of another shader, at the positions of a Push. The constants are the shader's own,
# or specialised as in rope.comp.
tokens='#define VKROPE_PUSH their_push
#define VKROPE_ID_WORD(index) their_cos[index]
#define VKROPE_SLOT_WORD(index) their_sin[index]
#define VKROPE_SOURCE_WORD(index) their_sin[index]'
tensor='#define VKROPE_TENSOR(name) k_##name
#define VKROPE_TENSOR_ROTATES 1
#define VKROPE_TENSOR_LAYOUT(side) k_##side
#define VKROPE_TENSOR_AT(side) offset_k_##side
#define VKROPE_TENSOR_HEADS (their_push.heads >> 16)
#define VKROPE_TENSOR_IN_PLACE flag_k_in_place
#define VKROPE_TENSOR_AFTER(words) words
#define VKROPE_TENSOR_SCATTERS (scatter != 0)
#define VKROPE_TENSOR_OF_CACHE 1'
# tensor_shader NAME MACROS: compiles a shader that declares the names that tensor.glsl needs, and
# processes a token.
tensor_shader() {
    {
        echo '#version 450'
        echo '#extension GL_GOOGLE_include_directive : require'
        echo '#extension GL_KHR_memory_scope_semantics : require'
        echo '#include "interface.h"'
        echo 'layout(local_size_x = 64) in;'
        echo '#define DECLARE(id, name, otherwise) layout(constant_id = id) const uint name = otherwise;'
        echo 'VKROPE_CONSTANTS(DECLARE)'
        echo 'layout(push_constant, std430) uniform Block { Push their_push; };'
        echo 'layout(set = 0, binding = 0) readonly buffer InWide { uvec4 k_in_wide[]; };'
        echo 'layout(set = 0, binding = 0) readonly buffer InPair { uvec2 k_in_pair[]; };'
        echo 'layout(set = 0, binding = 0) readonly buffer InWord { uint k_in_word[]; };'
        echo 'layout(set = 0, binding = 1) buffer OutWide { uvec4 k_out_wide[]; };'
        echo 'layout(set = 0, binding = 1) buffer OutPair { uvec2 k_out_pair[]; };'
        echo 'layout(set = 0, binding = 1) buffer OutWord { uint k_out_word[]; };'
        echo 'layout(set = 0, binding = 2) readonly buffer Cos { uint their_cos[]; };'
        echo 'layout(set = 0, binding = 3) readonly buffer Sin { uint their_sin[]; };'
        echo '#define VKROPE_ANGLE_WORD(index) their_cos[index]'
        echo '#define VKROPE_SIN_WORD(index) their_sin[index]'
        for file in element pairing turns angles sections; do echo "#include \"$file.glsl\""; done
        echo "$2"
        echo '#include "token.glsl"'
        echo "$3"
        echo '#include "tensor.glsl"'
        cat <<'END'
void main() {
    const uint index = gl_WorkGroupID.x, z = gl_WorkGroupID.z, from = k_from(index, z);
    const Token token = vkrope_token(index, z);
    Chunk chunk;
    chunk.from = chunk.to = uvec2(gl_LocalInvocationID.x, 64 + gl_LocalInvocationID.x);
    chunk.rotates = token.covered;
    const Angle angle =
        axes == 0 ? token.angle
                  : vkrope_axis_angle(VKROPE_AXES_MISFIT(8) == 0 ? 0
                                                                 : vkrope_axis_of(chunk.from.x));
    vkrope_angle_apart(element_f32, 0, 0, angle.row, chunk.c, chunk.s);
    chunk.c = vkrope_join(8, chunk.c, chunk.s);
    chunk.c1 = chunk.c;
    chunk.s1 = chunk.s;
    k_rotate_batch(k_load_chunk(k_first_units(from, 0, chunk.from)), chunk, from,
                   k_to(index, z, token), 0, 8);
    k_rotate_heads(chunk, from, k_to(index, z, token), 8);
    if (!k_in_place()) k_copy(chunk.from.x, from, k_to(index, z, token));
    if (vkrope_counts(token, z)) k_out_word[0] = 1;
}
END
    } | compile "$1"
}
must tensor_shader tensor "$tokens" "$tensor"
# If a macro is missing, the #error must name the macro.
for macro in $(printf '%s\n' "$tokens" "$tensor" | sed 's/^#define \([A-Z_]*\).*/\1/'); do
    case $macro in VKROPE_TENSOR*) file=tensor.glsl ;; *) file=token.glsl ;; esac
    without="define ${macro}[ (]"
    must_not "$file: define $macro" tensor_shader "no_$macro" \
        "$(echo "$tokens" | grep -v "$without")" "$(echo "$tensor" | grep -v "$without")"
done

refuses 'angles.glsl: define VKROPE_ANGLE_TEXTURE, VKROPE_ANGLE_WORD or VKROPE_TURN_WORDS' \
    no_macro '' ''
files='interface.h element.glsl pairing.glsl angles.glsl'
refuses 'angles.glsl: include interface.h, element.glsl and turns.glsl first' no_turns "$turns" ''

# Quantised stores and the Hadamard transform, for a unit that is a whole row.
files='interface.h element.glsl pairing.glsl turns.glsl angles.glsl hadamard.glsl quantise.glsl
    blocks.glsl'
for type in q8_0 q4_0 q4_1 q5_0 q5_1 iq4_nl; do
    compiles "$type" "$turns" "const uint type = element_$type;"'
    c = vkrope_scale(vkrope_butterfly(at > 32, vkrope_butterflies(4, 2, c), s),
                     vkrope_hadamard_factor(3));
    const VkropeBlock block = vkrope_block(
        type, vkrope_join_extremes(type, vkrope_extremes(type, 4, c), vkrope_extremes(type, 4, s)));
    const uint word = vkrope_pack_codes(vkrope_block_codes(type, c.a, block));
    words[row].x = vkrope_scales_word(type, block) + vkrope_block_halves(type);
    words[row].y = vkrope_join_nibbles(word, word) + vkrope_join_fifth_bits(word, word);'
done
for type in e4m3fn e5m2 int8 int4; do
    compiles "$type" "$turns" "const uint type = element_$type;"'
    const VkropeMadeScale scale = vkrope_made_scale(type, vkrope_extremes(type, 4, c), 1e-8);
    words[row] = vkrope_codes(type, vkrope_quotient(c.a, scale)) +
                 vkrope_codes(type, vkrope_times(c.a, 3.0));'
done
files='interface.h quantise.glsl'
refuses 'quantise.glsl: include interface.h and element.glsl first' no_element_to_quantise '' ''
files='interface.h element.glsl blocks.glsl'
refuses 'blocks.glsl: include interface.h, element.glsl and quantise.glsl first' no_codes '' ''
files='interface.h element.glsl pairing.glsl turns.glsl angles.glsl quantise.glsl blocks.glsl
    dequantise.glsl'
for type in e4m3fn int8 int4 q8_0 q4_0 iq4_nl; do
    compiles "read_$type" "$turns" "const uint type = element_$type;"'
    const uint codes = vkrope_spread_nibbles(words[row].x) | vkrope_spread_fifth_bits(at);
    c = Unit(vkrope_numbers(type, codes), vkrope_numbers(type, words[row].y));'
done
files='interface.h element.glsl quantise.glsl dequantise.glsl'
refuses 'dequantise.glsl: include interface.h, element.glsl, quantise.glsl and blocks.glsl first' \
    no_blocks_to_read '' ''
files='interface.h hadamard.glsl'
refuses 'hadamard.glsl: include interface.h and element.glsl first' no_element_to_transform '' ''

# Rows that several lanes store together, through shared words.
gaps='#define VKROPE_STAGED_GAPS 1'
shared='#define VKROPE_STAGED(index) words[index].w'
files='interface.h element.glsl pairing.glsl norm.glsl hadamard.glsl quantise.glsl blocks.glsl
    staging.glsl'
files="$files turns.glsl angles.glsl"
for type in q5_1 iq4_nl e4m3fn int4; do
    compiles "staged_$type" "$turns
$shared
$gaps" "const uint type = element_$type;"'
    const VkropeRow staged = VkropeRow(0, 64, at, 8);
    vkrope_stage_unit(4, vkrope_place(4 * at), 1, vkrope_hadamard_inside(4, 6, c));
    vkrope_hadamard_pass(6, 2, 4, staged);
    VkropeExtremes extremes = vkrope_no_extremes(type);
    extremes.most = vkrope_staged_most(type, staged);
    vkrope_stage_blocks(type, staged);
    const VkropeShare share = vkrope_begin_blocks(type, staged, 640, 8);
    vkrope_end_blocks(type, staged, 640, 8, share);
    words[row].y = vkrope_given_codes(type, staged, 1, 2.0) +
                   vkrope_made_codes(type, staged, 1, vkrope_made_scale(type, extremes,
                                     vkrope_power_of_two_from(type, extremes, 0.0)));
    words[row].x = vkrope_staged_bytes(type, staged, 4) + vkrope_row_bytes(type, 64) +
                   vkrope_staged_word(type, staged, 1);'
done
files='interface.h staging.glsl'
refuses 'staging.glsl: define VKROPE_STAGED(index)' no_staged '' ''
refuses 'staging.glsl: define VKROPE_STAGED_GAPS' no_gaps "$shared" ''
refuses 'staging.glsl: include norm.glsl, hadamard.glsl, quantise.glsl and blocks.glsl first' \
    no_codes_to_stage "$shared
$gaps" ''

# The ops need all declarations of rope.comp, so rope.comp must compile with the installed files.
compile whole <"$SOURCE/shaders/rope.comp" ||
    { wrong 'rope.comp does not compile with the installed files:' && cat "$SCRATCH/whole.log"; }

status='#define VKROPE_OUT_OF_RANGE_WORD(index) their_cos[index]'
files='interface.h ops_lanes.glsl'
refuses 'ops_lanes.glsl: define VKROPE_OUT_OF_RANGE_WORD(index)' no_status_word '' ''
refuses 'ops_lanes.glsl: define VKROPE_PRESENT_TOKENS' no_count "$status" ''
status="$status
#define VKROPE_PRESENT_TOKENS 1u"
refuses 'ops_lanes.glsl: include chunks.glsl, norm.glsl and tensor.glsl first' \
    no_tensors "$status" ''

# The shader in shaders/README.md must compile unchanged.
mkdir "$SCRATCH/guide"
awk '/^```glsl program$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' \
    "$SOURCE/shaders/README.md" | compile guide/attention ||
    wrong 'the shader of the page does not compile'
grep -q 'vkrope_rotate(' "$SCRATCH/guide/attention.comp" || wrong 'shaders/README.md has no shader'
if command -v spirv-val >/dev/null; then
    spirv-val --target-env vulkan1.1 "$SCRATCH/guide/attention.spv" ||
        wrong 'the shader of shaders/README.md makes an invalid module'
fi

# The tests above must be complete: they must define each macro that includes code, and call each
# function that no other function calls.
macros=$(sed -n 's/^#ifdef \(VKROPE_[A-Z_]*\)$/\1/p' "$installed"/*.glsl |
    grep -v '_GLSL$' | sort -u)
[ "$(echo "$macros" | wc -l)" -ge 4 ] || wrong "the macros are not found: $macros"
for macro in $macros; do
    grep -q "^#define ${macro}[ (]" "$SCRATCH"/*.comp ||
        wrong "no shader of this test defines $macro"
done
functions=$(sed -n 's/^[a-zA-Z0-9]* \(vkrope_[a-z_0-9]*\)(.*{$/\1/p' "$installed"/*.glsl | sort -u)
[ "$(echo "$functions" | wc -l)" -ge 15 ] || wrong "the functions are not found: $functions"
grep -ho 'vkrope_[a-z_0-9]*(' "$SCRATCH"/*.comp "$installed"/*.glsl |
    sort | uniq -c >"$SCRATCH/calls"
for function in $functions; do
    ! grep -qx " *1 $function(" "$SCRATCH/calls" || wrong "no shader of this test reaches $function"
done
exit $failed
