// SPDX-License-Identifier: MIT
// Tests the sharded batch over MPI ranks with one device each. MPI distributes the input and
// collects the results; in between the ranks do not communicate.
//
//     mpirun -n RANKS mpi_ranks
//
// The exit status of each rank is 0 if the shards have the bits of the whole, 1 if not, 2 on error.
#include <mpi.h>

#include <cstdio>
#include <stdexcept>

#include "sharded_batch.hpp"

namespace vkrope::sharding {
namespace {

struct World {
    World() {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
    }
    int rank = 0, size = 0;
};

// The parts of one tensor by rank. Their lengths may differ, as heads need not divide evenly.
struct Parts {
    Bytes bytes;
    std::vector<int> counts, starts;

    void append(const Bytes& part) {
        counts.push_back(int(part.size()));
        starts.push_back(int(bytes.size()));
        bytes.insert(bytes.end(), part.begin(), part.end());
    }
    Bytes of(std::size_t rank) const {
        const auto first = bytes.begin() + starts[rank];
        return Bytes(first, first + counts[rank]);
    }
};

void scatter(const Parts& parts, Bytes& part) {
    MPI_Scatterv(parts.bytes.data(), parts.counts.data(), parts.starts.data(), MPI_BYTE,
                 part.data(), int(part.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
}

void gather(const Bytes& part, Parts& parts) {
    MPI_Gatherv(part.data(), int(part.size()), MPI_BYTE, parts.bytes.data(), parts.counts.data(),
                parts.starts.data(), MPI_BYTE, 0, MPI_COMM_WORLD);
}

// Returns whether the shards have the bits of the whole on rank 0's device; valid on rank 0 only.
bool same_bits(const World& world, Device& device, const Batch& batch, Split split) {
    const auto shard_of = [&](int rank) {
        return Shard(batch, split, std::uint32_t(rank), std::uint32_t(world.size));
    };
    Tensors input;
    Parts q, k;
    if (world.rank == 0) {
        input = random_tensors(batch, 11);
        for (int rank = 0; rank < world.size; ++rank) {
            const Tensors part = shard_of(rank).part_of(input);
            q.append(part.q);
            k.append(part.k);
        }
    }
    const Shard shard = shard_of(world.rank);
    Tensors part{Bytes(shard.local().bytes(shard.local().q_heads)),
                 Bytes(shard.local().bytes(shard.local().k_heads))};
    scatter(q, part.q);
    scatter(k, part.k);
    part = shard.rotate(device, part);
    gather(part.q, q);
    gather(part.k, k);
    if (world.rank != 0) return true;
    Tensors whole{Bytes(input.q.size()), Bytes(input.k.size())};
    for (int rank = 0; rank < world.size; ++rank)
        shard_of(rank).put({q.of(std::size_t(rank)), k.of(std::size_t(rank))}, whole);
    const bool same = whole == rotate_whole(device, batch, input);
    std::printf("%s, split by %s over %d ranks: %s\n", batch.element == VKROPE_F32 ? "f32" : "f16",
                word_for(split), world.size,
                same ? "the bits of the whole" : "NOT the bits of the whole");
    return same;
}

int run(const World& world) {
    std::size_t validation_errors = 0;
    std::vector<Device> devices = open_all(validation_errors);
    Device& device = devices.at(std::size_t(world.rank) % devices.size());
    std::printf("rank %d: %s\n", world.rank, device.info().name);
    int wrong = 0;
    for (const Element element : {VKROPE_F32, VKROPE_F16})
        for (const Split split : splits)
            wrong += !same_bits(world, device, test_batch(element), split);
    if (world.rank == 0) std::printf("%d of 4 differ from the whole\n", wrong);
    devices.clear();
    if (validation_errors != 0) throw std::runtime_error("the validation layer found errors");
    MPI_Bcast(&wrong, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return wrong != 0;
}

}  // namespace
}  // namespace vkrope::sharding

int main(int argc, char** argv) {
    using namespace vkrope::sharding;
    MPI_Init(&argc, &argv);
    const World world;
    int status = 2;
    try {
        status = run(world);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %s\n", world.rank, error.what());
        MPI_Abort(MPI_COMM_WORLD, 2);  // the other ranks may be waiting
    }
    MPI_Finalize();
    return status;
}
