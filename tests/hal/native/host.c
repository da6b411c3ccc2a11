/*
 * host MODE BACKEND: a small host, compiled from the headers of one released ABI version.
 *
 * MODE `direct` opens and asks the backend itself, as a loader of that version did; `loader` goes
 * through libbedplate_hal. Then every mandatory table is used, a stale handle, a reserved word and
 * an unknown tail are tried. Prints `negotiated MAJOR.MINOR` and `ok`, or the first broken promise.
 *
 * With -DFUTURE the headers are those of a version that does not exist yet: bp_batch has `more` and
 * bp_queue has `drain` behind what there was. With -DMISUSE, bp_memory_info has `more` where its
 * first reserved word lay.
 */
#include "bedplate/hal_layout.h"
#include "bedplate/hal_struct.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const bp_api *api;
static uint32_t negotiated;

static void broken(int line, const char *what, long long got) {
    char text[256] = "";
    if (api && api->core && api->core->last_error)
        api->core->last_error(text, sizeof(text), NULL);
    printf("line %d: %s is %lld: %s\n", line, what, got, text);
    exit(1);
}

#define IS(value, wanted)                                                                          \
    do {                                                                                           \
        long long got = (long long)(value);                                                        \
        if (got != (long long)(wanted))                                                            \
            broken(__LINE__, #value, got);                                                         \
    } while (0)

static void log_line(void *user, uint32_t level, const bp_text *line) {
    (void)user;
    (void)level;
    (void)line;
}

static const void *no_service(void *user, const bp_text *name) {
    (void)user;
    (void)name;
    return NULL;
}

static bp_host host = {.head = {1, sizeof(bp_host)}, .log = log_line, .service = no_service};

/* What a loader of this version does: open, ask, read by the size rule, take the smaller minor. */
static void load_directly(const char *path) {
    static bp_api own;
    uint32_t offset = 0;
    const bp_api *answer = NULL;
    int32_t (*query)(const bp_host *, uint32_t, const bp_api **) = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    IS(library != NULL, 1);
    *(void **)&query = dlsym(library, "bedplate_hal_backend_query");
    IS(query != NULL, 1);
    IS(query(&host, BP_ABI_MAJOR, &answer), BP_OK);
    IS(bp_struct_read(answer, &own, sizeof(own), offsetof(bp_api, reserved), &offset), BP_OK);
    IS(own.major, BP_ABI_MAJOR);
    negotiated = own.minor < BP_ABI_MINOR ? own.minor : BP_ABI_MINOR;
    api = &own;
}

static void load_by_loader(const char *path) {
    bp_load_options options = {.head = {1, sizeof(options)},
                               .path = {path, strlen(path)},
                               .host = &host,
                               .major = BP_ABI_MAJOR,
                               .minor = BP_ABI_MINOR};
    int32_t status = bp_hal_load(&options, &api);
    if (status) {
        char text[512] = "";
        bp_hal_last_error(text, sizeof(text), NULL);
        printf("refused with %d: %s\n", status, text);
        exit(3);
    }
    negotiated = api->minor;
}

/* A batch with the field that only a future host knows. */
static void try_the_future(uint64_t device, uint64_t queue) {
    (void)device;
    (void)queue;
#ifdef FUTURE
    bp_batch batch = {.head = {1, sizeof(batch)}};
    IS(api->queue->submit(device, queue, &batch), BP_OK);
    batch.more = 1;
    int32_t status = api->queue->submit(device, queue, &batch);
    if (status != BP_INVALID_EXT)
        IS(status, BP_OK);
    printf("more %s\n", status ? "refused" : "accepted");
    printf("drain %s\n",
           api->queue->head.struct_size > offsetof(bp_queue, drain) ? "known" : "unknown");
#endif
}

static uint64_t new_memory(uint64_t device) {
    uint64_t memory = 0;
    bp_memory_info info = {.head = {1, sizeof(info)}, .bytes = 64};
#ifdef MISUSE
    info.more = 1;
    IS(api->mem->create(device, &info, &memory), BP_INVALID_EXT);
    puts("the reserved word is refused");
    exit(0);
#endif
    IS(api->mem->create(device, &info, &memory), BP_OK);
    return memory;
}

static const unsigned char *bytes_of(uint64_t device, uint64_t memory) {
    bp_memory_info info = {.head = {1, sizeof(info)}};
    IS(api->mem->describe(device, memory, &info), BP_OK);
    IS(info.bytes, 64);
    IS(info.host != NULL, 1);
    return info.host;
}

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static void move_bytes(uint64_t device, uint64_t queue) {
    uint64_t a = new_memory(device), b = new_memory(device), gate = 0, done = 0;
    IS(api->timeline->create(device, 0, &gate), BP_OK);
    IS(api->timeline->create(device, 4, &done), BP_OK);
    bp_fill_command fill = {.head = {1, sizeof(fill)},
                            .kind = BP_COMMAND_FILL,
                            .destination = {a, 0, 64},
                            .pattern = 0x44332211,
                            .pattern_bytes = 4};
    bp_copy_command copy = {.head = {1, sizeof(copy)},
                            .kind = BP_COMMAND_COPY,
                            .destination = {b, 0, 32},
                            .source = {a, 1, 32}};
    const bp_command *commands[] = {(const bp_command *)&fill, (const bp_command *)&copy};
    bp_fence wait = {gate, 1}, signal = {done, 5};
    bp_batch batch = {.head = {1, sizeof(batch)},
                      .tag = 9,
                      .wait = &wait,
                      .wait_count = 1,
                      .signal = &signal,
                      .signal_count = 1,
                      .commands = commands,
                      .command_count = 2};
    uint64_t value = 0;
    IS(api->queue->submit(device, queue, &batch), BP_OK);
    IS(api->timeline->query(device, done, &value), BP_OK);
    IS(value, 4);
    IS(api->timeline->signal(device, gate, 1), BP_OK);
    IS(api->timeline->wait_host(device, done, 5, now_ns() + 5000000000ull), BP_OK);
    IS(bytes_of(device, a)[63], 0x44);
    IS(bytes_of(device, b)[0], 0x22);
    IS(bytes_of(device, b)[31], 0x11);
    batch.reserved[3] = 1;
    IS(api->queue->submit(device, queue, &batch), BP_INVALID_EXT);
    IS(api->mem->release(device, a), BP_OK);
    IS(api->mem->release(device, a), BP_INVALID_ARGUMENT);
}

/* As a newer host would: a tail behind what this version knows, zero and then not. */
static void try_tails(uint64_t device) {
    struct {
        bp_queue_info info;
        uint64_t tail;
    } larger = {.info = {.head = {1, sizeof(larger)}}};
    uint64_t queue = 0;
    IS(api->queue->create(device, &larger.info, &queue), BP_OK);
    IS(api->queue->destroy(device, queue), BP_OK);
    larger.tail = 1;
    IS(api->queue->create(device, &larger.info, &queue), BP_INVALID_EXT);
}

int main(int count, char **words) {
    uint64_t device = 0, queue = 0;
    uint32_t devices = 0;
    if (count != 3)
        return 2;
    if (strcmp(words[1], "direct") == 0)
        load_directly(words[2]);
    else
        load_by_loader(words[2]);
    printf("negotiated %u.%u\n", BP_ABI_MAJOR, negotiated);
    bp_device_properties facts = {.head = {1, sizeof(facts)}};
    bp_queue_info info = {.head = {1, sizeof(info)}};
    IS(api->core->enumerate(&devices), BP_OK);
    IS(devices > 0, 1);
    IS(api->core->properties(0, &facts), BP_OK);
    IS(facts.name.length > 0 && facts.memory_bytes > 0, 1);
    IS(api->core->open(0, &device), BP_OK);
    IS(api->queue->create(device, &info, &queue), BP_OK);
    move_bytes(device, queue);
    try_tails(device);
    try_the_future(device, queue);
    IS(api->core->close(device), BP_OK);
    IS(api->core->close(device), BP_INVALID_ARGUMENT);
    puts("ok");
    return 0;
}
