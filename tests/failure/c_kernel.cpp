// SPDX-License-Identifier: MIT
#include "c_kernel.hpp"

namespace vkrope::test {

const Finish& norm_of_token() {
    static const Finish the_finish = full_finish(VKROPE_NORM_LAYER, VKROPE_NORM_SPAN_TOKEN,
                                                 VKROPE_NORM_PLACE_AFTER);
    return the_finish;
}

KernelInfo info_of(const PreparedInC& prepared) {
    const KernelInfo info = kernel_info(AngleSource(prepared.angles));
    return prepared.finish ? with_finish(with_v(info), *prepared.finish) : info;
}

Status make_kernel(const PreparedInC& prepared, OwnedKernel& kernel, vkrope_conversion conversion) {
    KernelInfo info = info_of(prepared);
    info.conversion = conversion;
    return make(kernel, [&](auto** made, auto* error) {
        return vkrope_kernel_create(&prepared.ref, &info, made, error);
    });
}

Status make_arena(const PreparedInC& prepared, OwnedArena& arena) {
    return make(arena, [&](auto** made, auto* error) {
        return vkrope_arena_create(prepared.kernel.get(), 3, made, error);
    });
}

Call call_of(const PreparedInC& prepared) {
    const Call call = kernel_call(prepared.host, 7, AngleSource(prepared.angles));
    return prepared.finish
               ? with_finish(prepared.host, info_of(prepared), with_v(prepared.host, call))
               : call;
}

Status record_call(PreparedInC& prepared) {
    const Call call = call_of(prepared);
    vkrope_arena_reset(prepared.arena.get());
    return answer([&](auto* error) {
        return vkrope_record(prepared.host.commands, prepared.kernel.get(), &call,
                             prepared.arena.get(), error);
    });
}

std::shared_ptr<PreparedInC> prepare_record(const FakeConfig& config, vkrope_angle_source angles,
                                            const Finish* finish) {
    auto made = std::make_shared<PreparedInC>(config, angles, finish);
    REQUIRE(make_kernel(*made, made->kernel));
    if (!config.push_descriptors) REQUIRE(make_arena(*made, made->arena));
    return made;
}

}  // namespace vkrope::test
