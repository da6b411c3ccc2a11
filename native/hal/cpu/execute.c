/* Running one node on the worker pool: the cpu's executor, see chassis/queue.h. */
#include "../chassis/futex.h"
#include "../chassis/queue.h"
#include "device.h"
#include "memory.h"
#include "module.h"
#include "plan.h"
#include "pool.h"
#include "windows.h"

#include <stdlib.h>
#include <string.h>

typedef struct bp_shared {
    unsigned char *data;
    uint32_t bytes;
} bp_shared;

typedef struct bp_cpu_queue {
    bp_queue_object queue;
    /* Executor's own: scratch of each worker, and the record of the failing kernel. */
    bp_shared *shared;
    bp_native_fault fault;
} bp_cpu_queue;

typedef struct launch_context {
    const bp_native_launch *launch;
    bp_native_entry entry;
    bp_shared *shared;
} launch_context;

typedef struct op_context {
    const bp_cpu_run *run;
} op_context;

static uint32_t threads_of(const bp_cpu_queue *queue) {
    return bp_cpu_device_of(queue->queue.device)->threads;
}

static struct bp_pool *pool_of(const bp_cpu_queue *queue) {
    return bp_cpu_device_of(queue->queue.device)->pool;
}

/* Makes the record ready for the next failure. */
static void clear(bp_cpu_queue *queue) {
    memset(&queue->fault, 0, sizeof(queue->fault));
    queue->fault.head = (bp_head){1, sizeof(queue->fault)};
}

static int32_t run_blocks(void *argument, uint32_t worker, uint64_t first, uint64_t count) {
    const launch_context *context = argument;
    bp_native_launch launch = *context->launch;
    launch.worker = worker;
    if (launch.dynamic_shared_bytes)
        launch.shared = context->shared[worker].data;
    return context->entry(&launch, first, count);
}

static int32_t run_op_blocks(void *argument, uint32_t worker, uint64_t first, uint64_t count) {
    const op_context *context = argument;
    bp_cpu_run run = *context->run;
    run.worker = worker;
    return run.plan->op->run(&run, first, count);
}

/* Gives every worker that may join its scratch. */
static int32_t provide_shared(bp_cpu_queue *queue, uint32_t bytes) {
    for (uint32_t i = 0; i < threads_of(queue); i++) {
        bp_shared *shared = &queue->shared[i];
        if (shared->bytes >= bytes)
            continue;
        free(shared->data);
        shared->bytes = 0;
        uint32_t whole = (bytes + 63u) & ~63u;
        shared->data = aligned_alloc(64, whole);
        if (!shared->data)
            return bp_native_fail(&queue->fault, BP_OUT_OF_MEMORY, 0, bytes,
                                  "no host memory for %u bytes of shared memory per worker", whole);
        shared->bytes = whole;
    }
    return BP_OK;
}

static int32_t run_launch(bp_cpu_queue *queue, const bp_launch_node *node) {
    bp_native_launch launch = {
        .head = {1, sizeof(launch)},
        .parameters = node->parameters,
        .parameters_bytes = node->parameters_bytes,
        .grid = {node->grid[0], node->grid[1], node->grid[2]},
        .block = {node->block[0], node->block[1], node->block[2]},
        .dynamic_shared_bytes = node->shared_bytes,
        .cancel = (const uint32_t *)(const void *)&queue->queue.cancel,
        .fault = &queue->fault,
    };
    if (node->shared_bytes) {
        int32_t status = provide_shared(queue, node->shared_bytes);
        if (status)
            return status;
    }
    const bp_cpu_kernel *kernel = (const bp_cpu_kernel *)node->kernel;
    launch_context context = {&launch, kernel->entry, queue->shared};
    bp_window_table *table = NULL;
    int32_t status = bp_windows_hold(bp_cpu_device_of(queue->queue.device)->windows, &table);
    if (status)
        return status;
    if (table) {
        launch.windows = table->window;
        launch.window_count = table->count;
    }
    status = bp_pool_run(pool_of(queue), run_blocks, &context, node->blocks);
    bp_windows_drop(table);
    return status;
}

static int32_t run_op(bp_cpu_queue *queue, const bp_cpu_binding *node) {
    bp_cpu_tensor tensors[BP_MAX_OP_TENSORS];
    memcpy(tensors, node->plan->tensors, node->plan->count * sizeof(tensors[0]));
    for (uint32_t i = 0; i < node->plan->count; i++)
        tensors[i].data = node->addresses[i];
    bp_cpu_run run = {.plan = node->plan,
                      .tensors = tensors,
                      .workspace = node->workspace,
                      .fault = &queue->fault,
                      .workers = threads_of(queue)};
    op_context context = {&run};
    return bp_pool_run(pool_of(queue), run_op_blocks, &context, node->plan->op->blocks(&run));
}

/* A pattern is repeated by hand over the first bytes, then those are copied: they stay in the first
 * cache, so a long fill is as fast as memset (a store for each pattern was 12 times slower). */
#define FILL_BLOCK 4096u

static void run_fill(const bp_span_node *node) {
    unsigned char *to = bp_cpu_bytes(&node->to);
    uint64_t bytes = node->to.bytes, head = bytes < FILL_BLOCK ? bytes : FILL_BLOCK;
    int repeats =
        (node->pattern & 0xffffu) == (node->pattern & 0xffu) * 0x101u &&
        (node->pattern_bytes == 2 || node->pattern == (node->pattern & 0xffffu) * 0x10001u);
    if (node->pattern_bytes == 1 || repeats) {
        memset(to, (int)(node->pattern & 0xffu), bytes);
        return;
    }
    for (uint64_t at = 0; at < head; at += node->pattern_bytes)
        memcpy(to + at, &node->pattern, node->pattern_bytes);
    for (uint64_t at = head; at < bytes; at += FILL_BLOCK)
        memcpy(to + at, to, bytes - at < FILL_BLOCK ? bytes - at : FILL_BLOCK);
}

static int32_t run_node(bp_cpu_queue *queue, const bp_node *node) {
    switch (node->kind) {
    case BP_COMMAND_COPY:
        memcpy(bp_cpu_bytes(&node->span.to), bp_cpu_bytes(&node->span.from), node->span.to.bytes);
        return BP_OK;
    case BP_COMMAND_FILL:
        run_fill(&node->span);
        return BP_OK;
    case BP_COMMAND_LAUNCH:
        return run_launch(queue, &node->launch);
    case BP_COMMAND_OP:
        return run_op(queue, node->op.bound);
    default: {
        uint64_t now = bp_now_ns();
        memcpy(bp_cpu_bytes(&node->span.to), &now, sizeof(now));
        return BP_OK;
    }
    }
}

static int32_t run(bp_queue_object *queue, const bp_node *node, bp_cause *cause) {
    bp_cpu_queue *own = (bp_cpu_queue *)queue;
    int32_t status = run_node(own, node);
    if (status && own->fault.claimed) {
        memcpy(cause->text, own->fault.text, sizeof(cause->text));
        clear(own);
    }
    return status;
}

static int32_t open_queue(bp_queue_object *queue) {
    bp_cpu_queue *own = (bp_cpu_queue *)queue;
    clear(own);
    own->shared = calloc(threads_of(own), sizeof(*own->shared));
    return own->shared ? BP_OK : bp_fail(BP_OUT_OF_MEMORY, "no host memory for a queue");
}

static void close_queue(bp_queue_object *queue) {
    bp_cpu_queue *own = (bp_cpu_queue *)queue;
    for (uint32_t i = 0; own->shared && i < threads_of(own); i++)
        free(own->shared[i].data);
    free(own->shared);
}

const bp_executor bp_executor_own = {
    .queue_bytes = sizeof(bp_cpu_queue),
    .thread_name = "bp-cpu-queue",
    .open = open_queue,
    .close = close_queue,
    .run = run,
};

const bp_batch_driver bp_batch_driver_own = {
    .launch = bp_cpu_launch_check, .op_bytes = sizeof(bp_cpu_binding), .op = bp_plan_bind};
