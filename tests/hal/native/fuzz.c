/*
 * fuzz BACKEND MODULE SEED CALLS THREADS: calls across all tables, each wrong in some way or none.
 *
 * Nothing a call is given is a wild pointer, because the ABI does not promise to survive one:
 * pointers are null or point to what the struct says is there. Everything else is open: sizes,
 * versions, reserved words, handles, ranges, counts, shapes, the content of memory. After each call
 * the status is one of the header's, a refusal has a sentence, and a refused call wrote no result.
 *
 * With threads, all of them use one device at once, and each has data of its own, because two
 * queues may race on memory by right. Prints `calls accepted`, exits 0; the sanitizer does the
 * rest.
 */
#include "fuzz.h"

#include <pthread.h>
#include <time.h>

#define DEVICE_LIFE 4000u

const bp_api *fuzz_api;
const bp_ops *fuzz_table_ops;
static const char *module_path;
static uint64_t seed, calls_wanted;
fuzzer *fuzz_all;
uint64_t fuzz_count;
/* Of all threads: they create, query, signal and destroy on it, and anyone may close it. */
static uint64_t common;

void fuzz_broken(const fuzzer *own, const char *call, const char *what, long long value) {
    char words[512] = "";
    api->core->last_error(words, sizeof(words), NULL);
    fprintf(stderr, "seed %llu, thread %u, call %llu: %s %s (%lld): %s\n", (unsigned long long)seed,
            own->index, (unsigned long long)own->calls, call, what, value, words);
    exit(1);
}

int32_t fuzz_checked(fuzzer *own, const char *call, int32_t status, const uint64_t *out) {
    own->calls++;
    own->accepted += status == BP_OK;
    if (status == BP_OK)
        reached(own, call);
    if (status > 0 || status < BP_BUSY)
        fuzz_broken(own, call, "gave an unknown status", status);
    if (status == BP_OK && out && *out == OUT_PATTERN)
        fuzz_broken(own, call, "succeeded without a result", 0);
    if (status != BP_OK) {
        uint64_t loader = 0, backend = 0;
        char words[8];
        bp_hal_last_error(words, sizeof(words), &loader);
        api->core->last_error(NULL, 0, &backend);
        if (loader + backend == 0)
            fuzz_broken(own, call, "refused without a sentence", status);
        if (out && *out != OUT_PATTERN)
            fuzz_broken(own, call, "refused, but wrote a result", status);
    }
    return status;
}

static void made(fuzzer *own, int kind, int32_t status, const uint64_t *out) {
    if (status == BP_OK && out)
        keep(own, kind, *out);
}

uint64_t fuzz_device(fuzzer *own) {
    if (chance(own, 4))
        return handle(own, DEVICES);
    return fuzz_count > 1 && chance(own, 40) ? __atomic_load_n(&common, __ATOMIC_ACQUIRE)
                                             : own->device;
}

/* ---------------------------------------------------------------------------------------- core */

static void renew(fuzzer *own) {
    if (own->device && api->core->close(own->device) != BP_OK)
        fuzz_broken(own, "close", "refused a live device", 0);
    if (api->core->open(0, &own->device) != BP_OK)
        fuzz_broken(own, "open", "refused", 0);
    for (uint32_t i = 0; i < KINDS * POOL; i++)
        __atomic_store_n(&own->pools[i / POOL][i % POOL], 0, __ATOMIC_RELAXED);
    keep(own, DEVICES, own->device);
    own->queue = 0;
}

static void call_core(fuzzer *own) {
    uint64_t *out = place(own);
    uint32_t room = (uint32_t)below(own, 20), *count = chance(own, 5) ? NULL : cut(own, 4);
    switch (below(own, 6)) {
    case 0:
        CALL(api->core->enumerate(count), NULL);
        break;
    case 1: {
        bp_device_properties facts = {.head = {1, sizeof(facts)}};
        CALL(api->core->properties((uint32_t)below(own, 3), GIVEN(own, facts)), NULL);
        break;
    }
    case 2: {
        bp_capability *claims = chance(own, 10) ? NULL : cut(own, room * sizeof(*claims));
        CALL(api->core->capabilities((uint32_t)below(own, 2), claims, room, count), NULL);
        break;
    }
    case 3: {
        uint64_t bytes = below(own, 600);
        CALL(api->core->last_error(chance(own, 10) ? NULL : cut(own, bytes), bytes, out), NULL);
        break;
    }
    case 4:
        if (chance(own, 3) && CALL(api->core->open((uint32_t)below(own, 2), out), out) == BP_OK &&
            out && api->core->close(*out) != BP_OK)
            fuzz_broken(own, "close", "refused a live device", 0);
        break;
    default:
        /* A handle of anything; of a live device only everyone's may go. */
        if (chance(own, 2) && fuzz_count > 1) {
            uint64_t fresh = 0;
            if (api->core->open(0, &fresh) != BP_OK)
                fuzz_broken(own, "open", "refused", 0);
            CALL(api->core->close(__atomic_exchange_n(&common, fresh, __ATOMIC_ACQ_REL)), NULL);
        } else {
            CALL(api->core->close(pooled(own, (int)(1 + below(own, KINDS - 1)))), NULL);
        }
    }
}

/* ----------------------------------------------------------------------------------------- mem */

static void call_memory(fuzzer *own) {
    uint64_t *out = place(own), device = fuzz_device(own);
    bp_memory_info info = {.head = {1, sizeof(info)}};
    bp_external external = {.head = {1, sizeof(external)}, .kind = 1, .value = number(own)};
    bp_range range = {handle(own, MEMORIES), number(own), number(own)};
    switch (below(own, 12)) {
    case 0:
    case 1:
    case 2:
        info.bytes = chance(own, 80) ? 64 + below(own, 8192) : number(own);
        /* Large, or larger than any machine: what lies between would be given, and filled. */
        if (info.bytes > 1ull << 22 && info.bytes < 1ull << 46)
            info.bytes = 1ull << 22;
        info.alignment = chance(own, 80) ? 64 : number(own);
        made(own, MEMORIES, CALL(api->mem->create(device, GIVEN(own, info), out), out), out);
        break;
    case 3:
        CALL(api->mem->release(device, handle(own, MEMORIES)), NULL);
        break;
    case 4:
    case 5:
        CALL(api->mem->describe(device, handle(own, MEMORIES), GIVEN(own, info)), NULL);
        break;
    case 6: {
        uint64_t at = below(own, PINNED);
        uint64_t bytes = chance(own, 80) ? below(own, PINNED - at + 1) : UINT64_MAX - below(own, 9);
        void *host = chance(own, 10) ? NULL : own->pinned + at;
        made(own, MEMORIES, CALL(api->mem->pin(own->device, host, bytes, out), out), out);
        break;
    }
    case 7:
        CALL(api->mem->reserve(device, number(own), number(own), out), out);
        break;
    case 8:
        CALL(api->mem->map(device, number(own), &range), NULL);
        break;
    case 9:
        CALL(api->mem->unmap(device, number(own), number(own)), NULL);
        break;
    case 10:
        CALL(api->mem->export_memory(device, handle(own, MEMORIES), GIVEN(own, external)), NULL);
        break;
    default:
        CALL(api->mem->import_memory(device, GIVEN(own, external), out), out);
    }
}

/* --------------------------------------------------------------------------------------- queue */

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

static void call_queue(fuzzer *own) {
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

/* ------------------------------------------------------------------------------------ timeline */

static void call_timeline(fuzzer *own) {
    uint64_t *out = place(own), device = fuzz_device(own), one = handle(own, TIMELINES);
    struct timespec now;
    switch (below(own, 6)) {
    case 0:
        made(own, TIMELINES, CALL(api->timeline->create(device, below(own, 3), out), out), out);
        break;
    case 1:
        CALL(api->timeline->signal(device, one, number(own)), NULL);
        break;
    case 2:
        /* The value of a poisoned one is written too. */
        CALL(api->timeline->query(device, one, chance(own, 3) ? NULL : cut(own, 8)), NULL);
        break;
    case 3:
        clock_gettime(CLOCK_MONOTONIC, &now);
        CALL(api->timeline->wait_host(device, one, number(own),
                                      (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec +
                                          below(own, 20000)),
             NULL);
        break;
    case 4:
        CALL(api->timeline->wait_host(device, one, number(own), below(own, 2)), NULL);
        break;
    default:
        if (chance(own, 30))
            CALL(api->timeline->destroy(device, one), NULL);
    }
}

/* -------------------------------------------------------------------------------------- module */

static void call_module(fuzzer *own) {
    static const char *const PATHS[] = {"", "relative.so", "/", "/nothing/there.so", "/etc/passwd"};
    uint64_t *out = place(own), device = fuzz_device(own), module = handle(own, MODULES);
    switch (below(own, 8)) {
    case 0: {
        bp_module_source source = {.head = {1, sizeof(source)}, .kind = BP_MODULE_NATIVE};
        source.path = text(own, chance(own, 60) ? module_path : PATHS[below(own, 5)]);
        if (chance(own, 10))
            source.kind = (uint32_t)number(own);
        if (chance(own, 15))
            made(own, MODULES, CALL(api->module->load(device, GIVEN(own, source), out), out), out);
        break;
    }
    case 1: {
        bp_module_info info = {.head = {1, sizeof(info)}};
        CALL(api->module->info(device, module, GIVEN(own, info)), NULL);
        break;
    }
    case 2:
    case 3:
    case 4: {
        /* Only a kernel that reads nothing is launched: others believe their arguments. */
        static const char *const NAMES[] = {"nothing", "no_such_kernel", ""};
        bp_text name = text(own, NAMES[chance(own, 10) ? 1 + below(own, 2) : 0]);
        const bp_text *given = chance(own, 3) ? NULL : &name;
        int32_t status = CALL(api->module->kernel(device, module, given, out), out);
        made(own, KERNELS, status, out);
        break;
    }
    case 5: {
        bp_kernel_info info = {.head = {1, sizeof(info)}};
        CALL(api->module->kernel_info(device, handle(own, KERNELS), GIVEN(own, info)), NULL);
        break;
    }
    case 6:
        if (chance(own, 40))
            CALL(api->module->unload(device, module), NULL);
        break;
    default:
        switch (below(own, 5)) {
        case 0:
            CALL(api->capture->begin(device, handle(own, QUEUES)), NULL);
            break;
        case 1:
            CALL(api->capture->end(device, handle(own, QUEUES), out), out);
            break;
        case 2:
            CALL(api->capture->launch(device, handle(own, QUEUES), number(own), NULL), NULL);
            break;
        case 3:
            CALL(api->capture->release(device, number(own)), NULL);
            break;
        default: {
            bp_text name = text(own, chance(own, 50) ? "bp.ops.1" : "bp.nothing.7");
            api->ext(chance(own, 10) ? NULL : &name);
            own->calls++;
        }
        }
    }
}

static void *work(void *argument) {
    static void (*const KIND[])(fuzzer *) = {call_core,     call_memory,   call_memory, call_queue,
                                             call_queue,    call_timeline, call_module, fuzz_ops,
                                             call_timeline, fuzz_ops};
    fuzzer *own = argument;
    uint64_t wanted = calls_wanted / fuzz_count;
    for (own->turns = 0; own->calls < wanted; own->turns++) {
        if (own->turns % DEVICE_LIFE == 0)
            renew(own);
        KIND[below(own, sizeof(KIND) / sizeof(KIND[0]))](own);
        after_call(own);
    }
    if (api->core->close(own->device) != BP_OK)
        fuzz_broken(own, "close", "refused a live device", 0);
    return NULL;
}

int main(int count, char **words) {
    if (count != 6)
        return 2;
    bp_load_options options = {.head = {1, sizeof(options)}, .path = {words[1], strlen(words[1])}};
    module_path = words[2];
    seed = strtoull(words[3], NULL, 10);
    calls_wanted = strtoull(words[4], NULL, 10);
    fuzz_count = strtoull(words[5], NULL, 10);
    uint64_t fresh = 0, calls = 0, accepted = 0;
    if (bp_hal_load(&options, &fuzz_api) || bp_hal_ops(fuzz_api, &fuzz_table_ops) ||
        api->core->open(0, &fresh))
        return 2;
    common = fresh;
    fuzzer *all = fuzz_all = calloc(fuzz_count, sizeof(*all));
    pthread_t *threads = calloc(fuzz_count, sizeof(*threads));
    for (uint32_t i = 0; i < fuzz_count; i++) {
        all[i].index = i;
        all[i].state = seed * 1000003u + i;
        pthread_create(&threads[i], NULL, work, &all[i]);
    }
    for (uint32_t i = 0; i < fuzz_count; i++) {
        pthread_join(threads[i], NULL);
        calls += all[i].calls;
        accepted += all[i].accepted;
    }
    api->core->close(common);
    printf("%llu %llu\n", (unsigned long long)calls, (unsigned long long)accepted);
    for (uint32_t i = 0; i < fuzz_count; i++)
        for (uint32_t n = 0; n < MOST_NAMES && all[i].names[n]; n++)
            printf("%.*s %llu\n", (int)strcspn(all[i].names[n], "("), all[i].names[n],
                   (unsigned long long)all[i].counts[n]);
    free(all);
    free(threads);
    return 0;
}
