/*
 * An open CUDA device: the primary context, one stream of its own for memory, what the device can.
 *
 * The primary context, because a fault ends CUDA for the whole process anyway (measured: every
 * context of the process answers with the sticky error, and no new one can be had), and because
 * memory of ours is then usable by other libraries of the process without a copy. So an open is
 * separate in handles, not in fate. Every entry makes the context current and leaves it so, except
 * a submit of launches alone, which needs that only when the driver says so (issue.c).
 */
#ifndef BEDPLATE_HAL_CUDA_DEVICE_H
#define BEDPLATE_HAL_CUDA_DEVICE_H

#include "../chassis/device.h"
#include "driver.h"

struct bp_cuda_queue;
struct bp_cuda_slab;
struct bp_cuda_span;
struct bp_cuda_pending;

/* Facts of a device by its index, read once and kept. */
typedef struct bp_cuda_facts {
    bp_cu_device device;
    char name[96], uuid[48], text[4][32];
    size_t memory_bytes;
    int major, minor, processors, l2_bytes, pci_bus, max_shared, max_threads;
    int max_grid[3], max_block[3];
    /* What it has beyond the mandatory tables. */
    int memory_operations, pools, virtual_memory, host_register, clusters, tensor_maps, external;
    bp_property properties[7];
} bp_cuda_facts;

typedef struct bp_cuda_device {
    bp_device base;
    const bp_cuda_facts *facts;
    bp_cu_context context;
    /* Order of allocations and releases; nothing else runs here, so it also tells of health. */
    bp_cu_stream stream;
    /* The timestamp kernel, loaded by the first batch that wants it. */
    bp_cu_module stamp_module;
    bp_cu_function stamp;
    /* What ops keep, made by the first plan that wants it; see op.h. */
    struct bp_blas_handle_s *blas;
    bp_cu_module convert_module;
    bp_cu_function narrow, widen;
    /* Timelines: on stream memory operations, or on events. */
    int words;
    struct bp_cuda_slab *slabs;
    struct bp_cuda_pending *stock;
    /* All queues, and whether bp_cuda_pump is under way. Under the lock. */
    struct bp_cuda_queue *queues;
    int pumping;
    /* The first sticky result of any call. */
    _Atomic bp_cu_result sticky;
    /* Address ranges reserved and mapped; under the lock. */
    struct bp_cuda_span *spans;
} bp_cuda_device;

static inline bp_cuda_device *bp_cuda_device_of(bp_device *device) {
    return (bp_cuda_device *)device;
}

/* The facts of an index that exists, or null with a sentence. */
const bp_cuda_facts *bp_cuda_facts_of(uint32_t index);

/* Whether devices are known, none of them with tensor maps; asks nobody. */
int bp_cuda_none_has_tensor_maps(void);

/* Enters the device with its context current, or null with a sentence. Pair with bp_device_leave.
 */
bp_cuda_device *bp_cuda_enter(uint64_t handle);

/* Unlocks a device locked by bp_device_lock, then does what bp_cuda_settle does. */
void bp_cuda_unlock(bp_cuda_device *device);

/* Makes the context current. */
static inline bp_cu_result bp_cuda_current(const bp_cuda_device *device) {
    bp_cu_context current = NULL;
    bp_cu_result result = bp_cu.context_current(&current);
    if (result == BP_CU_SUCCESS && current == device->context)
        return result;
    return bp_cu.context_set(device->context);
}

/* Remembers a sticky result of a call, to be told by bp_cuda_settle; other results are ignored.
 * Holds the lock or not. */
void bp_cuda_notice(bp_cuda_device *device, bp_cu_result result);

/* Loses the device when a sticky result was noticed. Without the lock. */
void bp_cuda_settle(bp_cuda_device *device);

/* Asks the driver whether the context still works, and loses the device if not. Without the lock.
 */
void bp_cuda_health(bp_cuda_device *device);

#endif
