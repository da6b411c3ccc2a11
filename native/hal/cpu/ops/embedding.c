/*
 * embedding: table [V,H] (f32, bf16 or GGUF rows), ids i32 [T], count?, out f32 [T,H]. Gathers rows
 * as f32; an id outside the table fails the launch and is named. One block is one token.
 */
#include "read.h"
#include "shape.h"

enum { TABLE, IDS, COUNT, OUT };

static int32_t plan(bp_cpu_plan *plan) {
    const bp_cpu_tensor *t = plan->tensors;
    if (!bp_cpu_is_float(t[TABLE].dtype) && !bp_cpu_is_blocks(t[TABLE].dtype))
        return bp_fail(BP_UNSUPPORTED, "embedding does not take a table of dtype 0x%x",
                       t[TABLE].dtype);
    BP_CPU_TRY(bp_cpu_check_rows("embedding", "table", &t[TABLE], 2));
    BP_CPU_TRY(bp_cpu_check_rows("embedding", "out", &t[OUT], 2));
    BP_CPU_TRY(bp_cpu_check_vector("embedding", "ids", &t[IDS], BP_DTYPE_I32, t[OUT].shape[0]));
    BP_CPU_TRY(bp_cpu_check_extent("embedding", "out", &t[OUT], 1, t[TABLE].shape[1]));
    BP_CPU_TRY(bp_cpu_check_dtype("embedding", "out", &t[OUT], BP_DTYPE_F32, BP_DTYPE_F32));
    BP_CPU_TRY(bp_cpu_check_count("embedding", &t[COUNT]));
    plan->writes = 1u << OUT;
    return BP_OK;
}

static uint64_t blocks(const bp_cpu_run *run) {
    return (uint64_t)bp_cpu_rows(&run->tensors[COUNT], run->tensors[OUT].shape[0]);
}

static int32_t run(const bp_cpu_run *run, uint64_t first, uint64_t count) {
    const bp_cpu_tensor *table = &run->tensors[TABLE], *out = &run->tensors[OUT];
    const int32_t *ids = (const int32_t *)(const void *)run->tensors[IDS].data;
    for (uint64_t token = first; token < first + count; token++) {
        int64_t id = ids[token];
        if (id < 0 || id >= table->shape[0])
            return bp_native_fail(run->fault, BP_LAUNCH_FAULT, token, id,
                                  "embedding: id %lld of token %llu, the table has %lld rows",
                                  (long long)id, (unsigned long long)token,
                                  (long long)table->shape[0]);
        bp_cpu_read(table->dtype, bp_cpu_at(table, id * table->stride[0]), table->shape[1],
                    (float *)(void *)bp_cpu_at(out, (int64_t)token * out->stride[0]));
    }
    return BP_OK;
}

const bp_cpu_op bp_cpu_op_embedding = {
    .id = BP_OP_EMBEDDING,
    .name = "embedding",
    .attribute_bytes = sizeof(bp_embedding_attributes),
    .tensors = 4,
    .optional = 1u << COUNT,
    .plan = plan,
    .blocks = blocks,
    .run = run,
};
