// SPDX-License-Identifier: MIT
// Kernels and calls of C++ as a program in C writes them, for Q, K and V with dense layouts
// and implicit positions.
#pragma once

#include "vkrope/kernel.hpp"
#include "vkrope/vkrope.h"

namespace vkrope::test {

template <class Struct>
Struct sized() {
    Struct s = {};
    s.struct_size = sizeof s;
    return s;
}

inline vkrope_device_ref in_c(const DeviceRef& ref) {
    auto c = sized<vkrope_device_ref>();
    c.instance = ref.instance;
    c.physical = ref.physical;
    c.device = ref.device;
    c.get_instance_proc_addr = ref.get_instance_proc_addr;
    c.enabled = ref.enabled;
    c.pipeline_cache = ref.pipeline_cache;
    c.allocator = ref.allocator;
    return c;
}

struct FinishInC {
    vkrope_norm norm = sized<vkrope_norm>();
    vkrope_finish finish = sized<vkrope_finish>();

    explicit FinishInC(const Finish& of) {
        norm.kind = vkrope_norm_kind(of.norm.kind);
        norm.span = vkrope_norm_span(of.norm.span);
        norm.place = vkrope_norm_place(of.norm.place);
        norm.eps = of.norm.eps;
        norm.weight = vkrope_parameter_shape(of.norm.weight);
        norm.weight_offset = of.norm.weight_offset;
        norm.bias = vkrope_parameter_shape(of.norm.bias);
        norm.round_between = of.norm.round_between;
        finish.norm = &norm;
        finish.bias = vkrope_parameter_shape(of.bias);
        finish.clip = of.clip;
        finish.scale = of.scale;
        finish.scale_call = of.scale_call;
        finish.scale_tokens = of.scale_tokens;
        finish.hadamard = of.hadamard;
        finish.store_scale = vkrope_store_scale(of.store_scale);
        finish.scale_floor = of.scale_floor;
        finish.scale_layout = vkrope_scale_layout(of.scale_layout);
    }
    FinishInC(const FinishInC&) = delete;
    FinishInC& operator=(const FinishInC&) = delete;
};

struct KernelInfoInC {
    vkrope_head_format q, k, v;
    FinishInC q_finish, k_finish, v_finish;
    vkrope_kernel_info info = sized<vkrope_kernel_info>();

    explicit KernelInfoInC(const KernelInfo& of)
        : q(width(of.tensor[Q])), k(width(of.tensor[K])), v(width(of.tensor[V])),
          q_finish(of.tensor[Q].ops), k_finish(of.tensor[K].ops), v_finish(of.tensor[V].ops) {
        info.pairing = vkrope_pairing(of.pairing);
        info.rotary_dim = of.rotary_dim;
        info.angles = vkrope_angle_source(of.angles);
        info.mapping = vkrope_mapping(of.mapping);
        info.conversion = vkrope_conversion(of.conversion);
        if (of.tensor[Q].head_dim != 0) info.q = &q, info.q_finish = &q_finish.finish;
        if (of.tensor[K].head_dim != 0) info.k = &k, info.k_finish = &k_finish.finish;
        if (of.tensor[V].head_dim != 0) info.v = &v, info.v_finish = &v_finish.finish;
        info.q_heads = of.tensor[Q].heads;
        info.k_heads = of.tensor[K].heads;
        info.v_heads = of.tensor[V].heads;
        info.two_parameter_sets = of.two_parameter_sets;
    }

   private:
    static vkrope_head_format width(const TensorInfo& of) {
        auto c = sized<vkrope_head_format>();
        c.in = vkrope_element(of.in);
        c.out = vkrope_element(of.out);
        c.head_dim = of.head_dim;
        c.rotary_offset = of.rotary_offset;
        return c;
    }
};

struct CallInC {
    vkrope_tensor q_in, q_out, k_in, k_out, v_in, v_out;
    vkrope_positions positions = sized<vkrope_positions>();
    vkrope_angle_plan plan = sized<vkrope_angle_plan>();
    vkrope_angles angles = sized<vkrope_angles>();
    vkrope_call call = sized<vkrope_call>();

    explicit CallInC(const Call& of)
        : q_in(tensor(of.in[Q])), q_out(tensor(of.out[Q])), k_in(tensor(of.in[K])),
          k_out(tensor(of.out[K])), v_in(tensor(of.in[V])), v_out(tensor(of.out[V])) {
        positions.first = of.positions.first;
        positions.batch_stride = of.positions.batch_stride;
        plan.source = vkrope_angle_source(of.angles.plan->source);
        plan.format = of.angles.plan->format;
        plan.extent = of.angles.plan->extent;
        plan.pairs = of.angles.plan->pairs;
        plan.rows = of.angles.plan->rows;
        plan.fold_log2 = of.angles.plan->fold_log2;
        plan.row_texels = of.angles.plan->row_texels;
        plan.bytes = of.angles.plan->bytes;
        angles.plan = &plan;
        angles.view = of.angles.view;
        angles.buffer = of.angles.buffer;
        call.batch = of.batch;
        call.tokens = of.tokens;
        if (of.in[Q].heads != 0) call.q_in = &q_in, call.q_out = &q_out;
        if (of.in[K].heads != 0) call.k_in = &k_in, call.k_out = &k_out;
        if (of.in[V].heads != 0) call.v_in = &v_in, call.v_out = &v_out;
        call.positions = &positions;
        call.angles = &angles;
        call.parameters = of.parameters;
        call.q_scale_tokens = of.scale_tokens[Q];
        call.k_scale_tokens = of.scale_tokens[K];
        call.v_scale_tokens = of.scale_tokens[V];
        call.q_scales_out = of.scales_out[Q];
        call.k_scales_out = of.scales_out[K];
        call.v_scales_out = of.scales_out[V];
        call.q_scale = of.q_scale;
        call.first_set_tokens = of.first_set_tokens;
    }
    CallInC(const CallInC&) = delete;
    CallInC& operator=(const CallInC&) = delete;

   private:
    static vkrope_tensor tensor(const Tensor& of) {
        auto c = sized<vkrope_tensor>();
        c.where = of.where;
        c.heads = of.heads;
        c.buffer_size = of.buffer_size;
        return c;
    }
};

}  // namespace vkrope::test
