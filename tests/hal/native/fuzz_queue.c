/* The fuzzer's queues, batches and commands: ranges, grids, fences and arguments of any kind. */
#include "fuzz.h"

static bp_range span(fuzzer *own) {
    bp_range made = {handle(own, MEMORIES), 8 * below(own, 16), 8 * below(own, 16)};
    if (chance(own, 10))
        made.offset = number(own);
    if (chance(own, 10))
        made.length = number(own);
    return made;
}

/* A grid that is small, or so large that it must be refused. */
static void grid(fuzzer *own, uint32_t *sizes) {
    for (int i = 0; i < 3; i++)
        sizes[i] = (uint32_t)(chance(own, 3) ? 0 : 1 + below(own, 4));
    if (chance(own, 5))
        sizes[0] = sizes[1] = sizes[2] = UINT32_MAX;
}

static void *launch(fuzzer *own) {
    uint32_t count = (uint32_t)below(own, 4);
    bp_argument *arguments = cut(own, count * sizeof(*arguments));
    if (!arguments)
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bytes = (uint32_t)below(own, 20);
        void *data = chance(own, 10) ? NULL : cut(own, bytes);
        arguments[i] = (bp_argument){.kind = (uint32_t)below(own, 4), .range = span(own)};
        arguments[i].bytes = chance(own, 5) && !data ? (uint32_t)number(own) : bytes;
        arguments[i].data = data;
        if (data)
            memset(data, 7, bytes);
    }
    bp_launch_command made = {.head = {1, sizeof(made)},
                              .kind = BP_COMMAND_LAUNCH,
                              .kernel = handle(own, KERNELS),
                              .dynamic_shared_bytes = chance(own, 10) ? (uint32_t)number(own) : 0,
                              .arguments = chance(own, 3) ? NULL : arguments,
                              .argument_count = count};
    grid(own, made.grid);
    grid(own, made.block);
    if (chance(own, 5))
        grid(own, made.cluster);
    return GIVEN(own, made);
}

static void *command(fuzzer *own) {
    switch (below(own, 10)) {
    case 0:
    case 1: {
        bp_copy_command made = {.head = {1, sizeof(made)},
                                .kind = BP_COMMAND_COPY,
                                .destination = span(own),
                                .source = span(own)};
        if (chance(own, 80))
            made.source.length = made.destination.length;
        return GIVEN(own, made);
    }
    case 2:
    case 3: {
        bp_fill_command made = {.head = {1, sizeof(made)},
                                .kind = BP_COMMAND_FILL,
                                .flags = chance(own, 3) ? (uint32_t)number(own) : 0,
                                .destination = span(own),
                                .pattern = (uint32_t)draw(own),
                                .pattern_bytes = (uint32_t)below(own, 6)};
        return GIVEN(own, made);
    }
    case 4: {
        bp_timestamp_command made = {
            .head = {1, sizeof(made)}, .kind = BP_COMMAND_TIMESTAMP, .destination = span(own)};
        return GIVEN(own, made);
    }
    case 5: {
        bp_fill_command made = {.head = {1, sizeof(made)}, .kind = (uint32_t)number(own)};
        return GIVEN(own, made);
    }
    case 6:
        return launch(own);
    default:
        return fuzz_op_command(own);
    }
}

static bp_fence *fences(fuzzer *own, uint32_t count, int far) {
    bp_fence *made = chance(own, 3) ? NULL : cut(own, count * sizeof(*made));
    for (uint32_t i = 0; made && i < count; i++)
        made[i] = (bp_fence){handle(own, TIMELINES), far ? number(own) : below(own, 4)};
    return made;
}

static void submit(fuzzer *own, uint64_t device, uint64_t queue, int with_data) {
    bp_batch batch = {.head = {1, sizeof(batch)},
                      .tag = draw(own),
                      .wait_count = chance(own, 20) ? (uint32_t)below(own, 3) : 0,
                      .signal_count = (uint32_t)below(own, 3),
                      .command_count = with_data ? (uint32_t)below(own, 5) : 0,
                      .flags = chance(own, 2) ? (uint32_t)number(own) : 0};
    batch.wait = fences(own, batch.wait_count, chance(own, 10));
    batch.signal = fences(own, batch.signal_count, 1);
    const bp_command **commands = cut(own, batch.command_count * sizeof(*commands));
    memset(own->in_batch, 0, sizeof(own->in_batch));
    for (uint32_t i = 0; commands && i < batch.command_count; i++) {
        commands[i] = command(own);
        if (commands[i] && commands[i]->head.struct_size >= sizeof(bp_command) &&
            commands[i]->head.struct_size <= 65536 && commands[i]->head.struct_size % 8 == 0 &&
            commands[i]->kind < 6)
            own->in_batch[commands[i]->kind]++;
    }
    batch.commands = chance(own, 2) ? NULL : commands;
    if (chance(own, 1) && batch.command_count == 0 && !(batch.commands = NULL))
        batch.command_count = (uint32_t)number(own);
    static const char *const KINDS_OF[] = {"?", "copy", "fill", "launch", "op", "timestamp"};
    if (CALL(api->queue->submit(device, queue, GIVEN(own, batch)), NULL) == BP_OK)
        for (uint32_t i = 1; i < 6; i++)
            for (uint32_t n = 0; n < own->in_batch[i]; n++)
                reached(own, KINDS_OF[i]);
}

void fuzz_queue(fuzzer *own) {
    uint64_t *out = place(own), device = fuzz_device(own);
    bp_queue_info info = {.head = {1, sizeof(info)},
                          .priority = (int32_t)number(own),
                          .flags = chance(own, 10) ? (uint32_t)number(own) : 0};
    switch (below(own, 10)) {
    case 0:
        if (chance(own, 20))
            made(own, QUEUES, CALL(api->queue->create(device, GIVEN(own, info), out), out), out);
        break;
    case 1:
        CALL(api->queue->flush(device, handle(own, QUEUES)), NULL);
        break;
    case 2:
        if (chance(own, 20))
            CALL(api->queue->destroy(device, handle(own, QUEUES)), NULL);
        break;
    case 3:
        submit(own, device, handle(own, QUEUES), fuzz_count == 1);
        break;
    default:
        /* Our own queue, kept out of the pools, with our own data. Renewed when it is stuck. */
        if (own->queue && chance(own, 2)) {
            if (api->queue->destroy(own->device, own->queue) != BP_OK)
                fuzz_broken(own, "destroy", "refused a live queue", 0);
            own->queue = 0;
        }
        if (!own->queue) {
            bp_queue_info plain = {.head = {1, sizeof(plain)}};
            int32_t status = api->queue->create(own->device, &plain, &own->queue);
            if (status != BP_OK)
                fuzz_broken(own, "create", "refused a queue", status);
        }
        submit(own, own->device, own->queue, 1);
    }
}
