/* reduce_parts.c - the memory and the counters of reductions that several thread blocks share. */
#include "reduce_kernels.h"

static size_t bytes_of(int numbers, bool wide)
{
    return (wide ? sizeof(double) : sizeof(float)) * (size_t)(numbers ? numbers : 1);
}

/* Bytes of the result of a block, between_blocks<Fold>::acc of reduce_ops.cuh. */
size_t reduce_acc_bytes(int row, bool wide)
{
    static const uint8_t numbers[OPS] = {
        [OP_norm] = 3,
        [OP_mean] = 2,
#define DUET_MOMENT1(name, ...) [OP_##name] = 6,
#include <duet/ops.def>
    };
    if (op_infos[row].flags & OP_GIVES_INDEX) return 2 * sizeof(int64_t);
    return bytes_of(numbers[row], wide);
}

/* Bytes of a lane, Fold::lane. */
size_t reduce_lane_bytes(int row, bool wide)
{
    static const uint8_t numbers[OPS] = {
        [OP_norm] = 3,
#define DUET_MOMENT1(name, ...) [OP_##name] = 3,
#include <duet/ops.def>
    };
    if (op_infos[row].flags & OP_GIVES_INDEX) return bytes_of(2, wide);
    return bytes_of(numbers[row], wide);
}

size_t reduce_part_bytes(const reduce_args *a, int row, bool wide)
{
    if (a->parts <= 1) return 0;
    return (size_t)(a->outputs * a->parts) * reduce_acc_bytes(row, wide);
}

/* Shares the available counters evenly between the tiles of outputs. */
meeting meet_at(uint32_t *counters, int64_t outputs, int64_t across)
{
    const int64_t tiles = (outputs + across - 1) / across;
    return (meeting){ counters, (uint32_t)((tiles + KERNELS_COUNTERS - 1) / KERNELS_COUNTERS) };
}
