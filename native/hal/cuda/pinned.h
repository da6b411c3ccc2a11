/*
 * Host memory registered with the driver, counted: the driver registers a byte once, but a caller
 * may pin it again while a batch in flight still uses the handle that was released before.
 *
 * One list for the process, because a registration is the process's.
 */
#ifndef BEDPLATE_HAL_CUDA_PINNED_H
#define BEDPLATE_HAL_CUDA_PINNED_H

#include "driver.h"

typedef struct bp_cuda_pinned bp_cuda_pinned;

/* Registers a range, or joins a registration that holds all of it. *out is null for memory that
 * somebody else registered. The context is current. */
bp_cu_result bp_cuda_pin(void *host, uint64_t bytes, bp_cuda_pinned **out);

/* Gives up one use; null is fine. */
void bp_cuda_unpin(bp_cuda_pinned *pinned);

#endif
