/*
 * embedding: out[t] = table[ids[t]] as f32, from f32, bf16 or GGUF rows (as in the file, not
 * packed). An id outside the table fails the launch and is named.
 */
#include "gguf.h"
#include "launch.h"

#include <string.h>

typedef struct parameters {
    const void *table;
    const int32_t *ids;
    const uint32_t *count;
    float *out;
    int64_t rows, width, table_rows, table_row_bytes, out_stride;
    uint32_t table_type, pad;
} parameters;

static void widen(const uint16_t *row, float *out, int64_t width) {
    int64_t i = 0;
    for (; i + BP_LANES <= width; i += BP_LANES)
        bp_store(out + i, bp_load_bf16(row + i));
    if (i < width)
        bp_store_part(out + i, bp_load_bf16_part(row + i, width - i), width - i);
}

static void copy_row(const parameters *p, const void *row, float *out) {
    if (p->table_type == BP_F32)
        memcpy(out, row, (size_t)p->width * sizeof(float));
    else if (p->table_type == BP_BF16_TYPE)
        widen((const uint16_t *)row, out, p->width);
    else
        bp_gguf_row(p->table_type, (const uint8_t *)row, p->width, out);
}

BP_KERNEL(embedding) {
    const parameters *p = BP_PARAMETERS(parameters, launch);
    bp_span span = bp_share(bp_rows(p->count, p->rows), launch->grid[0], first_block, block_count);
    for (int64_t token = span.from; token < span.to; token++) {
        int64_t id = p->ids[token];
        if (id < 0 || id >= p->table_rows)
            return bp_native_fail(launch->fault, BP_LAUNCH_FAULT, first_block, id,
                                  "embedding: id %lld of token %lld, the table has %lld rows",
                                  (long long)id, (long long)token, (long long)p->table_rows);
        copy_row(p, (const uint8_t *)p->table + id * p->table_row_bytes,
                 p->out + token * p->out_stride);
    }
    return BP_OK;
}
