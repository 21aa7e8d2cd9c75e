// SPDX-License-Identifier: MIT
// Tensors beyond what the device binds or dispatches at once: many dispatches give the bits of one.
// The device reports reduced limits, over many layouts; and real tensors have hundreds of MiB and 3
// GiB.
#include <algorithm>
#include <fstream>
#include <memory>
#include <string>

#include "support/recording.hpp"

namespace vkrope::test {

namespace {

struct Forced {
    std::uint32_t range = 0, workgroups = 0;  ///< 0: the device's limit
    Mapping mapping = Mapping::by_device;
};

Owned<Kernel> make_kernel(Device& on, KernelInfo info, const Forced& limits) {
    // 2 along y: calls of this size would not be cut if 7 were allowed.
    const DeviceRef ref = reporting(on, {.storage_range = limits.range,
                                         .workgroups_x = limits.workgroups,
                                         .workgroups_y = limits.workgroups ? 2u : 0u,
                                         .workgroups_z = limits.workgroups});
    info.mapping = limits.mapping;
    return Owned<Kernel>(must(create(ref, info)));
}

template <class Function>
Function function(Device& on, const char* name) {
    return reinterpret_cast<Function>(on.ref().get_instance_proc_addr(on.ref().instance, name));
}

// Records and submits one call. Returns its number of dispatches.
std::uint64_t run(Device& on, const Kernel& kernel, const Call& call) {
    const std::uint64_t count = must(dispatches(&kernel, call));
    Owned<DescriptorArena> arena;
    if (!(on.ref().enabled & push_descriptor))
        arena.reset(must(create_arena(&kernel, std::uint32_t(count))));
    const auto barrier = function<PFN_vkCmdPipelineBarrier>(on, "vkCmdPipelineBarrier");
    must(on.submit([&](VkCommandBuffer commands) {
        const Status status = record(commands, &kernel, call, arena.get());
        VkMemoryBarrier to_host = {};
        to_host.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
        to_host.srcAccessMask = boundary().output_access;
        to_host.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
        barrier(commands, boundary().stage, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0, nullptr,
                0, nullptr);
        return status;
    }));
    return count;
}

// ---- Layouts ----

// Buffers with their initial content, and a call on them.
struct Scenario {
    std::string name = {};
    std::uint64_t dispatches = 1;  ///< of the unsplit call
    KernelInfo info = {};
    Call call = {};
    AngleTable table = {};
    std::vector<std::pair<Buffer, Bytes>> buffers = {};

    VkDescriptorBufferInfo hold(Device& on, Bytes bytes) {
        Buffer buffer = must(Buffer::make(on, bytes.size()));
        const VkDescriptorBufferInfo whole = buffer.whole();
        buffers.emplace_back(std::move(buffer), std::move(bytes));
        return whole;
    }
    VkDescriptorBufferInfo hold(Device& on, const std::vector<std::int32_t>& words) {
        Bytes bytes(words.size() * 4);
        std::memcpy(bytes.data(), words.data(), bytes.size());
        return hold(on, bytes);
    }
    VkDescriptorBufferInfo elements(Device& on, Element element, std::size_t count) {
        return hold(
            on, random_elements(element, (count + 1) / 2 * 2, std::uint32_t(81 + buffers.size())));
    }
};

// The content of all buffers of the call afterwards.
std::vector<Bytes> result(Device& on, Scenario& s, const Forced& limits, std::uint64_t& count) {
    for (auto& [buffer, bytes] : s.buffers) must(buffer.upload(bytes.data(), bytes.size()));
    const Owned<Kernel> kernel = make_kernel(on, s.info, limits);
    s.call.angles = s.table.angles();
    count = run(on, *kernel, s.call);
    std::vector<Bytes> after;
    for (auto& [buffer, bytes] : s.buffers) {
        after.emplace_back(bytes.size());
        must(buffer.download(after.back().data(), after.back().size()));
    }
    return after;
}

Tensor rows(VkDescriptorBufferInfo where, std::uint32_t heads, std::int64_t batch = 0,
            std::int64_t token = 0, std::int64_t head = 0, VkDeviceSize offset = 0) {
    return {.where = {where.buffer, offset, where.range - offset},
            .heads = heads,
            .token_stride = token,
            .head_stride = head,
            .batch_stride = batch};
}

std::vector<Scenario> scenarios(Device& on) {
    std::vector<Scenario> all;
    constexpr std::uint32_t B = 2, S = 240, D = 64;
    const auto add = [&](const char* name, Element in, Element out,
                         AngleSource angles = AngleSource::factored_texture) -> Scenario& {
        Scenario& s = all.emplace_back();
        s.name = name;
        s.info = {.rotary_dim = D, .q = {in, out, D, 0}, .k = {in, out, D, 0}, .angles = angles};
        s.call = {.batch = B, .tokens = S};
        return s;
    };
    const auto finish = [&](Scenario& s, std::uint64_t positions) {
        Rotation r = rotation(s.info.pairing, s.info.q.head_dim, s.info.rotary_dim);
        s.table = must(AngleTable::make(on, r, s.info.angles, positions));
        if (s.info.angles == AngleSource::direct_buffer) REQUIRE(s.table.plan().bytes < 65536);
    };
    const auto count_outside = [&](Scenario& s) {
        s.call.out_of_range = s.hold(on, std::vector<std::int32_t>{100});
    };
    const auto ids = [&](Scenario& s, std::uint32_t most) {
        std::vector<std::int32_t> positions(B * S);
        for (std::uint32_t i = 0; i < positions.size(); ++i)
            positions[i] = std::int32_t(i * 7 % most) - 20;
        s.info.positions = PositionSource::ids;
        s.call.positions = {.ids = s.hold(on, positions), .batch_stride = S};
    };
    {
        Scenario& s = add(
            "[batch, tokens, heads, D] f32, out of place; some positions are outside the table",
            Element::f32, Element::f32);
        for (Tensor* t : {&s.call.q_in, &s.call.q_out})
            *t = rows(s.elements(on, Element::f32, B * S * 4 * D), 4);
        for (Tensor* t : {&s.call.k_in, &s.call.k_out})
            *t = rows(s.elements(on, Element::f32, B * S * 2 * D), 2);
        count_outside(s);
        finish(s, 200);
    }
    {
        Scenario& s = add("[batch, heads, tokens, D] f16, in place; ids; angles from a buffer",
                          Element::f16, Element::f16, AngleSource::direct_buffer);
        s.call.q_in = s.call.q_out = rows(s.elements(on, Element::f16, B * 6 * S * D), 6, 6 * S * D,
                                          D, S * D);
        s.call.k_in = s.call.k_out = rows(s.elements(on, Element::f16, B * 3 * S * D), 3, 3 * S * D,
                                          D, S * D);
        ids(s, 250);
        count_outside(s);
        finish(s, 200);
    }
    {
        Scenario& s = add("[batch, heads, tokens, D] f16 to [batch, tokens, heads, D] f32",
                          Element::f16, Element::f32);
        s.call.q_in = rows(s.elements(on, Element::f16, B * 4 * S * D), 4, 4 * S * D, D, S * D);
        s.call.q_out = rows(s.elements(on, Element::f32, B * 4 * S * D), 4);
        finish(s, S);
    }
    {
        Scenario& s = add("packed QKV [batch, tokens, 8, D] bf16, in place", Element::bf16,
                          Element::bf16);
        const auto packed = s.elements(on, Element::bf16, B * S * 8 * D);
        s.call.q_in = s.call.q_out = rows(packed, 4, S * 8 * D, 8 * D, D);
        s.call.k_in = s.call.k_out = rows(packed, 2, S * 8 * D, 8 * D, D, 4 * D * 2);
        finish(s, S);
    }
    {
        Scenario& s = add("grouped QKV [batch, tokens, 3 groups of 2 + 2, D] f16, in place",
                          Element::f16, Element::f16);
        const auto packed = s.elements(on, Element::f16, B * S * 12 * D);
        s.call.q_in = rows(packed, 6, S * 12 * D, 12 * D, D);
        s.call.k_in = rows(packed, 3, S * 12 * D, 12 * D, D, 2 * D * 2);
        s.call.q_in.heads_per_group = 2, s.call.k_in.heads_per_group = 1;
        s.call.q_in.group_stride = s.call.k_in.group_stride = 4 * D;
        s.call.q_out = s.call.q_in;
        s.call.k_out = s.call.k_in;
        s.dispatches = B;  // z counts the groups
        finish(s, S);
    }
    {
        Scenario& s = add("K into pages of 8 rows f16; some slots are -1, some outside the cache",
                          Element::f16, Element::f16);
        s.info.scatter_k = true;
        constexpr std::uint32_t slots = 1024;
        s.call.q_in = s.call.q_out = rows(s.elements(on, Element::f16, B * S * 4 * D), 4);
        s.call.k_in = rows(s.elements(on, Element::f16, B * S * 2 * D), 2);
        s.call.k_out = rows(s.elements(on, Element::f16, slots * 2 * D), 2);
        std::vector<std::int32_t> where(B * S);
        for (std::uint32_t i = 0; i < where.size(); ++i)
            where[i] = i % 11 == 0 ? -1 : std::int32_t(i * 331 % (slots + 40));
        std::sort(where.begin(),
                  where.begin() + S);  // one sequence in order, one shuffled
        s.call.paged_cache = {.slot_mapping = s.hold(on, where), .page_size = 8};
        count_outside(s);
        finish(s, 200);
    }
    {
        Scenario& s = add("f16 rows of 20 channels that begin at any half word, in place",
                          Element::f16, Element::f16);
        constexpr std::uint32_t odd = 20, token = 5 * odd + 7;
        s.info.rotary_dim = 12;
        s.info.q = {Element::f16, Element::f16, odd, 3};
        s.info.k = {};
        s.call.tokens = 600;
        s.call.q_in = s.call.q_out = rows(s.elements(on, Element::f16, B * 600 * token), 5,
                                          600 * token, token, odd + 1, 2);
        s.call.q_in.where.range = s.call.q_out.where.range = (B * 600 * token - 3) * 2;
        s.call.q_in.buffer_size = s.call.q_out.buffer_size = B * 600 * token * 2;
        finish(s, 600);
    }
    {
        Scenario& s = add("interleaved, two windows, [tokens, batch 9, heads, D] f16; z is cut",
                          Element::f16, Element::f16);
        s.info.pairing = Pairing::interleaved;
        s.info.rotary_dim = 32;
        s.info.windows[0] = {8, 16};
        s.info.windows[1] = {32, 16};
        s.call.batch = 9;
        s.call.tokens = 60;
        for (Tensor* t : {&s.call.q_in, &s.call.q_out})
            *t = rows(s.elements(on, Element::f16, 9 * 60 * 4 * D), 4, 4 * D, 9 * 4 * D, D);
        s.call.k_in = s.call.k_out = rows(s.elements(on, Element::f16, 9 * 60 * 2 * D), 2, 2 * D,
                                          9 * 2 * D, D);
        finish(s, 60);
    }
    // Each tensor with a norm, parameters of each head and factors of tokens, none of which begin
    // where their buffer does.
    const auto steps = [&](Scenario& s, const Norm& norm) {
        const Finish each = {
            .bias = ParameterShape::head_channel, .norm = norm, .clip = 2, .scale_tokens = true};
        const struct {
            const Tensor& tensor;
            Finish& taken;
            std::uint32_t& heads;
            VkDescriptorBufferInfo& factors;
        } tensors[] = {{s.call.q_in, s.info.q_finish, s.info.q_heads, s.call.q_scale_tokens},
                       {s.call.k_in, s.info.k_finish, s.info.k_heads, s.call.k_scale_tokens},
                       {s.call.v_in, s.info.v_finish, s.info.v_heads, s.call.v_scale_tokens}};
        const std::uint32_t rows_of_call = s.call.batch * s.call.tokens;
        for (const auto& [tensor, taken, heads, factors] : tensors) {
            if (tensor.heads == 0) continue;
            taken = each;
            heads = tensor.heads;
            const auto words = s.elements(on, Element::f32, 3 + rows_of_call);
            factors = {words.buffer, 12, std::uint64_t{rows_of_call} * 4};
        }
        const std::size_t bytes = must(plan_parameters(s.info)).bytes;
        const auto words = s.elements(on, Element::f32, 4 + bytes / 4);
        s.call.parameters = {words.buffer, 16, bytes};
    };
    const Norm of_head = {
        .kind = NormKind::rms, .eps = 1e-6f, .weight = ParameterShape::head_channel};
    const Norm of_token = {.kind = NormKind::layer,
                           .span = NormSpan::token,
                           .place = NormPlace::after,
                           .eps = 1e-5f,
                           .weight = ParameterShape::head_channel,
                           .bias = ParameterShape::channel};
    {
        Scenario& s = add("[batch, heads, tokens, D] f16 in place, norms of heads; heads are cut",
                          Element::f16, Element::f16);
        s.call.q_in = s.call.q_out = rows(s.elements(on, Element::f16, B * 6 * S * D), 6, 6 * S * D,
                                          D, S * D);
        s.call.k_in = s.call.k_out = rows(s.elements(on, Element::f16, B * 3 * S * D), 3, 3 * S * D,
                                          D, S * D);
        steps(s, of_head);
        finish(s, S);
    }
    {
        Scenario& s = add(
            "packed QKV [batch, tokens, 8, D] bf16 in place, norms over a token, of V too",
            Element::bf16, Element::bf16);
        s.info.v = s.info.k;
        const auto packed = s.elements(on, Element::bf16, B * S * 8 * D);
        s.call.q_in = s.call.q_out = rows(packed, 4, S * 8 * D, 8 * D, D);
        s.call.k_in = s.call.k_out = rows(packed, 2, S * 8 * D, 8 * D, D, 4 * D * 2);
        s.call.v_in = s.call.v_out = rows(packed, 2, S * 8 * D, 8 * D, D, 6 * D * 2);
        steps(s, of_token);
        finish(s, S);
    }
    {
        Scenario& s = add("grouped QKV [batch, tokens, 3 groups of 2 + 2, D] f32, norms of heads",
                          Element::f32, Element::f32);
        const auto packed = s.elements(on, Element::f32, B * S * 12 * D);
        s.call.q_in = rows(packed, 6, S * 12 * D, 12 * D, D);
        s.call.k_in = rows(packed, 3, S * 12 * D, 12 * D, D, 2 * D * 4);
        s.call.q_in.heads_per_group = 2, s.call.k_in.heads_per_group = 1;
        s.call.q_in.group_stride = s.call.k_in.group_stride = 4 * D;
        s.call.q_out = s.call.q_in;
        s.call.k_out = s.call.k_in;
        s.dispatches = B;  // z counts the groups
        steps(s, of_head);
        finish(s, S);
    }
    {
        Scenario& s = add("K and V into pages of 8 rows f16, norms over a token; pages are cut",
                          Element::f16, Element::f16);
        s.info.v = s.info.k;
        s.info.scatter_k = true;
        constexpr std::uint32_t slots = 1024;
        s.call.q_in = s.call.q_out = rows(s.elements(on, Element::f16, B * S * 4 * D), 4);
        s.call.k_in = rows(s.elements(on, Element::f16, B * S * 2 * D), 2);
        s.call.k_out = rows(s.elements(on, Element::f16, slots * 2 * D), 2);
        s.call.v_in = rows(s.elements(on, Element::f16, B * S * 2 * D), 2);
        s.call.v_out = rows(s.elements(on, Element::f16, slots * 2 * D), 2);
        std::vector<std::int32_t> where(B * S);
        for (std::uint32_t i = 0; i < where.size(); ++i)
            where[i] = i % 11 == 0 ? -1 : std::int32_t(i * 331 % (slots + 40));
        s.call.paged_cache = {.slot_mapping = s.hold(on, where), .page_size = 8};
        count_outside(s);
        steps(s, of_token);
        finish(s, 200);
    }
    {
        Scenario& s = add("[tokens, batch 9, heads, D] f16 to f32, norms over a token; z is cut",
                          Element::f16, Element::f32);
        s.call.batch = 9;
        s.call.tokens = 60;
        s.info.k = {};
        s.call.q_in = rows(s.elements(on, Element::f16, 9 * 60 * 4 * D), 4, 4 * D, 9 * 4 * D, D);
        s.call.q_out = rows(s.elements(on, Element::f32, 9 * 60 * 4 * D), 4, 4 * D, 9 * 4 * D, D);
        steps(s, of_token);
        finish(s, 60);
    }
    {
        Scenario& s = add("one row of K for 6 heads (broadcast), f16", Element::f16, Element::f16);
        s.call.k_in = rows(s.elements(on, Element::f16, B * S * D), 6, S * D, D, broadcast);
        s.call.k_out = rows(s.elements(on, Element::f16, B * S * 6 * D), 6);
        finish(s, S);
    }
    return all;
}

}  // namespace

TEST_CASE(
    "a range of 64 KiB, 7 workgroups, and both: the bits of the unsplit call, over many layouts") {
    for (const bool push : {true, false}) {  // with an arena: fewer cases, since compiling is slow
        Device& on = device(push);
        for (Scenario& s : scenarios(on)) {
            if (!push && s.info.angles == AngleSource::factored_texture && !s.info.scatter_k)
                continue;
            CAPTURE(s.name);
            std::uint64_t one = 0;
            const std::vector<Bytes> unsplit = result(on, s, {}, one);
            CHECK(one == s.dispatches);
            std::size_t changed = 0;
            for (std::size_t i = 0; i < unsplit.size(); ++i)
                changed += unsplit[i] != s.buffers[i].second;
            CHECK(changed >= 1);
            const Forced small[] = {{.range = 1u << 16, .mapping = Mapping::cpu},
                                    {.workgroups = 7, .mapping = Mapping::gpu},
                                    {.range = 1u << 16, .workgroups = 7, .mapping = Mapping::gpu}};
            for (const Forced& limits : small) {
                if (!push && (limits.range == 0 || limits.workgroups == 0)) continue;
                CAPTURE(limits.range);
                CAPTURE(limits.workgroups);
                std::uint64_t many = 0;
                const std::vector<Bytes> split = result(on, s, limits, many);
                CHECK(many > s.dispatches);
                for (std::size_t i = 0; i < unsplit.size(); ++i) {
                    CAPTURE(i);
                    CHECK(split[i] == unsplit[i]);
                }
            }
        }
    }
}

// ---- For real ----

namespace {

// Values of magnitude below 2, of either sign and any element type; equal for equal `block`.
void fill(Element element, std::uint64_t block, Bytes& bytes) {
    const std::uint64_t mask = element == Element::f32 ? 0xbfffffffbfffffffu : 0xbfffbfffbfffbfffu;
    std::uint64_t state = block * 0x9e3779b97f4a7c15u + 1;
    for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        const std::uint64_t bits = state & mask;
        std::memcpy(bytes.data() + i, &bits, 8);
    }
}

// Bytes that are available on the machine; UINT64_MAX if unknown.
std::uint64_t available_memory() {
    std::ifstream meminfo("/proc/meminfo");
    for (std::string line; std::getline(meminfo, line);) {
        if (line.starts_with("MemAvailable:")) return std::stoull(line.substr(13)) * 1024;
    }
    return UINT64_MAX;
}

// A tensor in `runs` contiguous runs of memory: sequences, or planes of one head.
struct Large {
    std::string name;
    Element in, out;
    bool in_place, by_head;  ///< by_head: [batch, heads, tokens, head_dim]
    std::uint32_t batch, tokens, heads;

    static constexpr std::uint32_t D = 128, positions = 5000, piece_tokens = 8192;
    std::uint64_t elements() const { return std::uint64_t{batch} * tokens * heads * D; }
    std::uint32_t runs() const { return by_head ? batch * heads : batch; }
    std::uint32_t run_heads() const { return by_head ? 1 : heads; }
    std::uint64_t bytes(Element element) const { return elements() * element_bytes(element); }
    Tensor tensor(const VkDescriptorBufferInfo& where) const {
        const std::int64_t S = tokens;
        return {.where = where,
                .heads = heads,
                .token_stride = by_head ? D : heads * D,
                .head_stride = by_head ? S * D : D,
                .batch_stride = S * heads * D};
    }
};

// Memory that the host maps and accesses directly. The driver may give more than it promises, and
// Buffer asks only for what it promises.
class MappedBuffer {
   public:
    MappedBuffer() = default;
    MappedBuffer(MappedBuffer&& other) noexcept { *this = std::move(other); }
    MappedBuffer& operator=(MappedBuffer&& other) noexcept {
        std::swap(on_, other.on_);
        std::swap(handle_, other.handle_);
        std::swap(memory_, other.memory_);
        std::swap(mapped_, other.mapped_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~MappedBuffer() {
        if (!on_) return;
        function<PFN_vkDestroyBuffer>(*on_, "vkDestroyBuffer")(on_->ref().device, handle_, nullptr);
        function<PFN_vkFreeMemory>(*on_, "vkFreeMemory")(on_->ref().device, memory_, nullptr);
    }

    // On failure the status names the failing call; the destructor frees what was made.
    static Result<MappedBuffer> make(Device& on, VkDeviceSize bytes) {
        Result<MappedBuffer> made;
        made->on_ = &on;
        made->bytes_ = bytes;
        if (const char* failed = made->allocate()) {
            made.status.code = Code::out_of_device_memory;
            std::strncpy(made.status.what, failed, sizeof made.status.what - 1);
        }
        return made;
    }

    Status upload(const void* source, std::size_t bytes, VkDeviceSize offset) {
        std::memcpy(mapped_ + offset, source, bytes);
        return {};
    }
    Status download(void* target, std::size_t bytes, VkDeviceSize offset) {
        std::memcpy(target, mapped_ + offset, bytes);
        return {};
    }
    VkDescriptorBufferInfo whole() const { return {handle_, 0, bytes_}; }

   private:
    const char* allocate() {
        const VkDevice device = on_->ref().device;
        VkBufferCreateInfo info = {};
        info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
        info.size = bytes_;
        info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
        if (function<PFN_vkCreateBuffer>(*on_, "vkCreateBuffer")(device, &info, nullptr, &handle_))
            return "vkCreateBuffer failed";
        VkMemoryRequirements needs = {};
        function<PFN_vkGetBufferMemoryRequirements>(*on_, "vkGetBufferMemoryRequirements")(
            device, handle_, &needs);
        VkPhysicalDeviceMemoryProperties memory = {};
        function<PFN_vkGetPhysicalDeviceMemoryProperties>(
            *on_, "vkGetPhysicalDeviceMemoryProperties")(on_->ref().physical, &memory);
        constexpr VkMemoryPropertyFlags mappable = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                                   VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        VkMemoryAllocateInfo allocation = {};
        allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
        allocation.allocationSize = needs.size;
        while (
            allocation.memoryTypeIndex < memory.memoryTypeCount &&
            (!(needs.memoryTypeBits >> allocation.memoryTypeIndex & 1) ||
             (memory.memoryTypes[allocation.memoryTypeIndex].propertyFlags & mappable) != mappable))
            ++allocation.memoryTypeIndex;
        if (allocation.memoryTypeIndex == memory.memoryTypeCount)
            return "no memory that the host can map";
        if (function<PFN_vkAllocateMemory>(*on_, "vkAllocateMemory")(device, &allocation, nullptr,
                                                                     &memory_))
            return "vkAllocateMemory failed";
        if (function<PFN_vkBindBufferMemory>(*on_, "vkBindBufferMemory")(device, handle_, memory_,
                                                                         0))
            return "vkBindBufferMemory failed";
        void* at = nullptr;
        if (function<PFN_vkMapMemory>(*on_, "vkMapMemory")(device, memory_, 0, VK_WHOLE_SIZE, 0,
                                                           &at))
            return "vkMapMemory failed";
        mapped_ = static_cast<std::byte*>(at);
        return nullptr;
    }

    Device* on_ = nullptr;
    VkBuffer handle_ = VK_NULL_HANDLE;
    VkDeviceMemory memory_ = VK_NULL_HANDLE;
    std::byte* mapped_ = nullptr;
    VkDeviceSize bytes_ = 0;
};

// Rotates all of it with one call, and then, in a separate buffer, a few tokens at a time; every
// bit must be the same.
template <class Any>
void rotate_large(Device& on, const Large& large) {
    CAPTURE(large.name);
    const std::uint64_t widest = std::max(large.bytes(large.in), large.bytes(large.out));
    if (widest <= on.info().limits.maxStorageBufferRange) {
        MESSAGE(large.name << ": skipped: the device binds all of it at once");
        return;
    }
    const std::uint64_t needed = large.bytes(large.in) +
                                 (large.in_place ? 0 : large.bytes(large.out));
    if (available_memory() < needed + (std::uint64_t{1} << 30)) {
        MESSAGE(large.name << ": skipped: it takes " << (needed >> 20) << " MiB, the machine has "
                           << (available_memory() >> 20));
        return;
    }
    Result<Any> in = Any::make(on, large.bytes(large.in));
    Result<Any> out = in && !large.in_place ? Any::make(on, large.bytes(large.out)) : Result<Any>{};
    if (!in || !out) {
        MESSAGE(large.name << ": skipped: the device has no such buffer: "
                           << (in ? out : in).status.what);
        return;
    }
    const AngleTable table = must(
        AngleTable::make(on, rotation(Pairing::half_split, Large::D, Large::D),
                         AngleSource::factored_texture, Large::positions));
    std::vector<std::int32_t> positions(large.tokens);
    for (std::uint32_t t = 0; t < large.tokens; ++t)
        positions[t] = std::int32_t(t % Large::positions);
    Buffer ids = must(Buffer::make(on, positions.size() * 4));
    must(ids.upload(positions.data(), positions.size() * 4));

    // Pieces in memory order; the last one of a run may be short.
    const std::uint32_t row = large.run_heads() * Large::D;
    const std::uint64_t in_row = std::uint64_t{row} * element_bytes(large.in),
                        out_row = std::uint64_t{row} * element_bytes(large.out);
    const auto each_piece = [&](auto&& action) {
        for (std::uint64_t run_index = 0; run_index < large.runs(); ++run_index) {
            for (std::uint32_t first = 0; first < large.tokens; first += Large::piece_tokens) {
                const std::uint32_t count = std::min(Large::piece_tokens, large.tokens - first);
                const std::uint64_t at = run_index * large.tokens + first;  // rows
                Bytes content(count * in_row);
                fill(large.in, at, content);
                action(first, count, at, content);
            }
        }
    };
    each_piece([&](std::uint32_t, std::uint32_t, std::uint64_t at, const Bytes& content) {
        must(in->upload(content.data(), content.size(), at * in_row));
    });

    const Owned<Kernel> kernel = make_kernel(on,
                                             {.rotary_dim = Large::D,
                                              .q = {large.in, large.out, Large::D, 0},
                                              .positions = PositionSource::ids},
                                             {});
    Call whole{.batch = large.batch,
               .tokens = large.tokens,
               .positions = {.ids = ids.whole()},
               .angles = table.angles()};
    whole.q_in = large.tensor(in->whole());
    whole.q_out = large.in_place ? whole.q_in : large.tensor(out->whole());
    const std::uint64_t many = run(on, *kernel, whole);
    CHECK(many > 1);
    MESSAGE(large.name << ": " << many << " dispatches, where the device binds "
                       << on.info().limits.maxStorageBufferRange << " bytes");

    Buffer piece = must(Buffer::make(on, Large::piece_tokens * in_row)),
           turned = must(Buffer::make(on, Large::piece_tokens * out_row));
    std::uint64_t compared = 0, different = 0, unrotated = 0;
    each_piece([&](std::uint32_t first, std::uint32_t count, std::uint64_t at,
                   const Bytes& content) {
        must(piece.upload(content.data(), content.size()));
        Call few{.tokens = count,
                 .positions = {.ids = {ids.handle(), std::uint64_t{first} * 4,
                                       std::uint64_t{count} * 4}},
                 .angles = table.angles()};
        few.q_in = {.where = {piece.handle(), 0, count * in_row}, .heads = large.run_heads()};
        few.q_out = {.where = {turned.handle(), 0, count * out_row}, .heads = large.run_heads()};
        REQUIRE(run(on, *kernel, few) == 1);
        Bytes expected(count * out_row), got(count * out_row);
        must(turned.download(expected.data(), expected.size()));
        must((large.in_place ? in : out)->download(got.data(), got.size(), at * out_row));
        compared += got.size();
        different += got != expected;
        unrotated += expected == content;
    });
    CHECK(compared == large.bytes(large.out));
    CHECK(different == 0);
    CHECK(unrotated == 0);
}

}  // namespace

TEST_CASE(
    "300 MiB: more than lavapipe binds at once, in place and out of place, by token and by head") {
    if (gpu_assisted()) return;  // the same shaders and bindings as above
    const Large all[] = {
        {"[1, 150001, 8, 128] f16 in place", Element::f16, Element::f16, true, false, 1, 150'001,
         8},
        {"[2, 8, 75001, 128] f16 in place, heads before tokens", Element::f16, Element::f16, true,
         true, 2, 75'001, 8},
        {"[3, 25001, 8, 128] f32 out of place", Element::f32, Element::f32, false, false, 3, 25'001,
         8},
        {"[1, 3, 200001, 128] f16 to f32, heads before tokens", Element::f16, Element::f32, false,
         true, 1, 200'001, 3},
    };
    for (const Large& large : all) rotate_large<Buffer>(device(), large);
}

TEST_CASE("3 GiB in place: offsets past 2^31 bytes") {
    if (gpu_assisted()) return;
    // Without the layer: lavapipe gives such memory, but reports a heap of 2 GiB, which the layer
    // would enforce.
    Device on = must(Device::open({.select = device().info().uuid}));
    rotate_large<MappedBuffer>(on, {"[2, 786432, 8, 128] f16, 3 GiB", Element::f16, Element::f16,
                                    true, false, 2, 786'432, 8});
}

TEST_CASE("more than 65535 workgroups, and more than 65535 sequences") {
    if (gpu_assisted()) return;
    constexpr std::uint32_t D = 2, positions = 1000, piece = 100'000;
    Device& on = device();
    const AngleTable table = must(AngleTable::make(on, rotation(Pairing::half_split, D, D),
                                                   AngleSource::factored_texture, positions));
    const Finish normed = {.norm = {.kind = NormKind::rms, .eps = 1e-6f}, .scale_tokens = true};
    // A workgroup has 8 tokens: one lane for the step of a row, 8 head lanes for one head.
    const struct {
        std::uint32_t batch, tokens;
        Finish finish = {};
    } calls[] = {
        {1, 65536 * 64 + 100}, {65537, 3}, {1, 65536 * 8 + 100, normed}, {65537, 3, normed}};
    for (const auto& [batch, tokens, finish] : calls) {
        const Owned<Kernel> kernel = make_kernel(on,
                                                 {.rotary_dim = D,
                                                  .q = {Element::f32, Element::f32, D, 0},
                                                  .positions = PositionSource::ids,
                                                  .q_finish = finish},
                                                 {.mapping = Mapping::gpu});
        CAPTURE(batch);
        CAPTURE(finish.scale_tokens);
        const std::uint32_t rows_in_all = batch * tokens;
        Bytes content(std::size_t{rows_in_all} * D * 4);
        fill(Element::f32, 5, content);
        std::vector<std::int32_t> numbers(rows_in_all);
        for (std::uint32_t i = 0; i < rows_in_all; ++i) numbers[i] = std::int32_t(i % positions);
        Buffer ids = must(Buffer::make(on, numbers.size() * 4)),
               x = must(Buffer::make(on, content.size())),
               factors = upload(
                   on, random_elements(Element::f32, finish.scale_tokens ? rows_in_all : 1, 6));
        must(ids.upload(numbers.data(), numbers.size() * 4));
        const auto rotated = [&](std::uint32_t sequences, std::uint32_t of_tokens,
                                 std::uint32_t at_once) {
            must(x.upload(content.data(), content.size()));
            std::uint64_t count = 0;
            for (std::uint32_t first = 0; first < of_tokens; first += at_once) {
                const std::uint32_t few = std::min(at_once, of_tokens - first);
                Call call{.batch = sequences, .tokens = few, .angles = table.angles()};
                call.positions = {.ids = {ids.handle(), std::uint64_t{first} * 4,
                                          std::uint64_t{sequences} * few * 4},
                                  .batch_stride = few};
                call.q_in = call.q_out = {.where = {x.handle(), std::uint64_t{first} * D * 4,
                                                    std::uint64_t{sequences} * few * D * 4},
                                          .heads = 1};
                if (finish.scale_tokens)
                    call.q_scale_tokens = {factors.handle(), std::uint64_t{first} * 4,
                                           std::uint64_t{sequences} * few * 4};
                count += run(on, *kernel, call);
            }
            Bytes after(content.size());
            must(x.download(after.data(), after.size()));
            return std::pair{after, count};
        };
        const auto [whole, count] = rotated(batch, tokens, tokens);
        const auto [pieces, piece_count] = rotated(1, rows_in_all, piece);
        CHECK(count == (tokens + 65535 * 8 - 1) / (65535 * 8) * ((batch + 65534) / 65535));
        CHECK(piece_count == (rows_in_all + piece - 1) / piece);
        CHECK(whole == pieces);
        CHECK(whole != content);
    }
}

}  // namespace vkrope::test
