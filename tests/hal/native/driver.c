/*
 * driver BACKEND MODULE SECONDS: loader and backend under a sanitizer.
 *
 * Threads submit, wait, fail, release behind running work, destroy what others wait for, and close
 * devices that are in use; every status is one that the header allows. The sanitizer finds what is
 * wrong; this file only makes the situations. Exits with 0, or 1 with the first broken promise.
 */
#include "bedplate/hal_loader.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS 4
#define BLOCKS  64

static const bp_api *api;
static const bp_ops *ops;
static const char *module_path;
static uint64_t end_ns;

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static void fail(const char *what, int line, int32_t status) {
    char text[512] = "";
    if (api)
        api->core->last_error(text, sizeof(text), NULL);
    fprintf(stderr, "line %d: %s gave %d: %s\n", line, what, status, text);
    exit(1);
}

#define OK(call)                                                                                   \
    do {                                                                                           \
        int32_t got = (call);                                                                      \
        if (got != BP_OK)                                                                          \
            fail(#call, __LINE__, got);                                                            \
    } while (0)
#define GIVES(call, wanted)                                                                        \
    do {                                                                                           \
        int32_t got = (call);                                                                      \
        if (got != (wanted))                                                                       \
            fail(#call, __LINE__, got);                                                            \
    } while (0)

static uint64_t memory(uint64_t device, uint64_t bytes) {
    bp_memory_info info = {.head = {1, sizeof(info)}, .bytes = bytes};
    uint64_t out;
    OK(api->mem->create(device, &info, &out));
    return out;
}

static void *host(uint64_t device, uint64_t handle) {
    bp_memory_info info = {.head = {1, sizeof(info)}};
    OK(api->mem->describe(device, handle, &info));
    return info.host;
}

static uint64_t new_queue(uint64_t device) {
    bp_queue_info info = {.head = {1, sizeof(info)}};
    uint64_t out;
    OK(api->queue->create(device, &info, &out));
    return out;
}

static uint64_t new_timeline(uint64_t device) {
    uint64_t out;
    OK(api->timeline->create(device, 0, &out));
    return out;
}

static uint64_t load(uint64_t device) {
    bp_module_source source = {.head = {1, sizeof(source)},
                               .kind = BP_MODULE_NATIVE,
                               .path = {module_path, strlen(module_path)}};
    uint64_t out;
    OK(api->module->load(device, &source, &out));
    return out;
}

static uint64_t find(uint64_t device, uint64_t module, const char *name) {
    bp_text text = {name, strlen(name)};
    uint64_t out;
    OK(api->module->kernel(device, module, &text, &out));
    return out;
}

static int32_t submit(uint64_t device, uint64_t queue, const bp_command *const *commands,
                      uint32_t count, bp_fence wait, bp_fence signal) {
    bp_batch batch = {.head = {1, sizeof(batch)},
                      .tag = 7,
                      .wait = &wait,
                      .wait_count = wait.timeline != 0,
                      .signal = &signal,
                      .signal_count = signal.timeline != 0,
                      .commands = commands,
                      .command_count = count};
    return api->queue->submit(device, queue, &batch);
}

static int32_t await(uint64_t device, uint64_t timeline, uint64_t value) {
    return api->timeline->wait_host(device, timeline, value, now_ns() + 20000000000ull);
}

/* A plan of convert over 8 x 32 elements. */
static uint64_t new_plan(uint64_t device) {
    int64_t shape[2] = {8, 32};
    bp_tensor x = {.head = {1, sizeof(x)}, .dtype = BP_DTYPE_F32, .rank = 2, .shape = shape};
    bp_tensor out = x;
    out.dtype = BP_DTYPE_BF16;
    const bp_tensor *tensors[3] = {&x, NULL, &out};
    bp_op_plan plan = {.head = {1, sizeof(plan)}};
    OK(ops->plan(device, BP_OP_CONVERT, tensors, 3, NULL, 0, &plan));
    return plan.plan;
}

/* One round of a thread on a device of many: everything that works, then everything in flight is
 * given back at once. */
static void round_of_work(uint64_t device, uint64_t count_blocks, uint64_t value, uint64_t *shared,
                          uint64_t shared_timeline) {
    uint64_t a = memory(device, 4096), b = memory(device, 4096), queue = new_queue(device);
    uint64_t done = new_timeline(device), plan = new_plan(device);
    bp_argument argument = {.kind = BP_ARGUMENT_RANGE, .range = {a, 0, 4096}};
    bp_fill_command fill = {.head = {1, sizeof(fill)},
                            .kind = BP_COMMAND_FILL,
                            .destination = {a, 0, 4096},
                            .pattern = 0,
                            .pattern_bytes = 4};
    bp_launch_command launch = {.head = {1, sizeof(launch)},
                                .kind = BP_COMMAND_LAUNCH,
                                .kernel = count_blocks,
                                .grid = {BLOCKS, 1, 1},
                                .block = {1, 1, 1},
                                .arguments = &argument,
                                .argument_count = 1};
    bp_copy_command copy = {.head = {1, sizeof(copy)},
                            .kind = BP_COMMAND_COPY,
                            .destination = {b, 0, 4096},
                            .source = {a, 0, 4096}};
    bp_range bindings[3] = {{a, 0, 1024}, {0, 0, 0}, {b, 2048, 512}};
    bp_op_command op = {.head = {1, sizeof(op)},
                        .kind = BP_COMMAND_OP,
                        .plan = plan,
                        .bindings = bindings,
                        .binding_count = 3};
    const bp_command *commands[] = {(const bp_command *)&fill, (const bp_command *)&launch,
                                    (const bp_command *)&launch, (const bp_command *)&copy,
                                    (const bp_command *)&op};
    OK(submit(device, queue, commands, 5, (bp_fence){0, 0}, (bp_fence){done, 1}));
    OK(await(device, done, 1));
    const uint32_t *words = host(device, b);
    for (int i = 0; i < BLOCKS; i++)
        if (words[i] != 2)
            fail("count_blocks", __LINE__, (int32_t)words[i]);
    /* Behind a fence that comes later, with everything it needs released. */
    uint64_t gate = new_timeline(device);
    OK(submit(device, queue, commands, 5, (bp_fence){gate, 1}, (bp_fence){done, 2}));
    OK(api->mem->release(device, a));
    OK(api->mem->release(device, b));
    OK(ops->release(device, plan));
    if (value % 2) {
        OK(api->timeline->signal(device, gate, 1));
        OK(await(device, done, 2));
    }
    OK(api->queue->destroy(device, queue));
    if (value % 2 == 0)
        GIVES(await(device, done, 2), BP_CANCELLED);
    OK(api->timeline->destroy(device, gate));
    OK(api->timeline->destroy(device, done));
    GIVES(api->mem->release(device, a), BP_INVALID_ARGUMENT);
    /* Whoever is first moves the shared timeline; the others' smaller values are refused. */
    uint64_t next = __atomic_add_fetch(shared, 1, __ATOMIC_RELAXED);
    int32_t status = api->timeline->signal(device, shared_timeline, next);
    if (status != BP_OK && status != BP_INVALID_ARGUMENT)
        fail("signal", __LINE__, status);
}

typedef struct task {
    uint64_t device, kernel, timeline;
    uint64_t *shared;
} task;

/* What is said of a device may be asked by anyone at any time. */
static void ask_of_devices(void) {
    uint32_t count = 0, claims = 0;
    OK(api->core->enumerate(&count));
    for (uint32_t index = 0; index < count; index++) {
        bp_device_properties facts = {.head = {1, sizeof(facts)}};
        OK(api->core->properties(index, &facts));
        OK(api->core->capabilities(index, NULL, 0, &claims));
        for (uint32_t i = 0; i < facts.property_count; i++)
            if (!facts.properties[i].key.length)
                fail("a property without a name", __LINE__, (int32_t)i);
    }
}

static void *work(void *argument) {
    task *own = argument;
    ask_of_devices();
    for (uint64_t turn = 0; now_ns() < end_ns; turn++)
        round_of_work(own->device, own->kernel, turn, own->shared, own->timeline);
    return NULL;
}

static void many_threads(void) {
    uint64_t device, shared = 0;
    OK(api->core->open(0, &device));
    uint64_t module = load(device);
    task own = {device, find(device, module, "count_blocks"), new_timeline(device), &shared};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, &own);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    OK(api->module->unload(device, module));
    OK(api->core->close(device));
    GIVES(api->core->close(device), BP_INVALID_ARGUMENT);
}

static void *sleeper(void *argument) {
    task *own = argument;
    int32_t status = await(own->device, own->timeline, 1);
    if (status != BP_CANCELLED && status != BP_INVALID_ARGUMENT)
        fail("sleeper", __LINE__, status);
    return NULL;
}

static void *submitter(void *argument) {
    task *own = argument;
    int32_t status = BP_OK;
    while (status == BP_OK)
        status = submit(own->device, own->kernel, NULL, 0, (bp_fence){own->timeline, 1},
                        (bp_fence){0, 0});
    if (status != BP_INVALID_ARGUMENT)
        fail("submitter", __LINE__, status);
    return NULL;
}

/* Closes a device under threads that wait and submit; its struct is used again by the next. */
static void close_in_use(void) {
    uint64_t device;
    pthread_t first, second;
    OK(api->core->open(0, &device));
    task own = {.device = device, .timeline = new_timeline(device), .kernel = new_queue(device)};
    pthread_create(&first, NULL, sleeper, &own);
    pthread_create(&second, NULL, submitter, &own);
    struct timespec nap = {0, 3000000};
    nanosleep(&nap, NULL);
    OK(api->core->close(device));
    pthread_join(first, NULL);
    pthread_join(second, NULL);
}

static void *destroyer(void *argument) {
    task *own = argument;
    struct timespec nap = {0, 1000000};
    nanosleep(&nap, NULL);
    OK(api->timeline->destroy(own->device, own->timeline));
    return NULL;
}

/* Destroys a timeline under a waiter, and one that a batch will signal. */
static void destroy_in_use(void) {
    uint64_t device;
    pthread_t first, second;
    OK(api->core->open(0, &device));
    uint64_t queue = new_queue(device), gate = new_timeline(device);
    task own = {.device = device, .timeline = new_timeline(device)};
    OK(submit(device, queue, NULL, 0, (bp_fence){gate, 1}, (bp_fence){own.timeline, 1}));
    pthread_create(&first, NULL, sleeper, &own);
    pthread_create(&second, NULL, destroyer, &own);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    OK(api->timeline->signal(device, gate, 1));
    OK(api->core->close(device));
}

/* Faults, a lost device, and what is refused afterwards. */
static void failures(void) {
    uint64_t device, block = 5, status_bytes = (uint32_t)BP_DEVICE_LOST;
    OK(api->core->open(0, &device));
    uint64_t module = load(device), queue = new_queue(device), out;
    uint64_t done = new_timeline(device), other = new_timeline(device);
    bp_argument argument = {.kind = BP_ARGUMENT_BYTES, .bytes = 8, .data = &block};
    bp_launch_command launch = {.head = {1, sizeof(launch)},
                                .kind = BP_COMMAND_LAUNCH,
                                .kernel = find(device, module, "fail_at"),
                                .grid = {BLOCKS, 1, 1},
                                .block = {1, 1, 1},
                                .dynamic_shared_bytes = 256,
                                .arguments = &argument,
                                .argument_count = 1};
    const bp_command *command = (const bp_command *)&launch;
    OK(submit(device, queue, &command, 1, (bp_fence){0, 0}, (bp_fence){done, 1}));
    GIVES(await(device, done, 1), BP_LAUNCH_FAULT);
    launch.kernel = find(device, module, "give_status");
    argument.data = &status_bytes;
    OK(submit(device, queue, &command, 1, (bp_fence){0, 0}, (bp_fence){other, 1}));
    GIVES(await(device, other, 1), BP_DEVICE_LOST);
    GIVES(api->timeline->create(device, 0, &out), BP_DEVICE_LOST);
    OK(api->core->close(device));
}

int main(int count, char **words) {
    if (count != 4)
        return 2;
    bp_load_options options = {.head = {1, sizeof(options)}, .path = {words[1], strlen(words[1])}};
    const bp_api *again = NULL;
    module_path = words[2];
    end_ns = now_ns() + (uint64_t)(atof(words[3]) * 1e9);
    OK(bp_hal_load(&options, &api));
    OK(bp_hal_load(&options, &again));
    if (again != api)
        fail("a second load", __LINE__, 0);
    OK(bp_hal_ops(api, &ops));
    many_threads();
    for (int turn = 0; turn < 20; turn++) {
        close_in_use();
        destroy_in_use();
        failures();
    }
    puts("done");
    return 0;
}
