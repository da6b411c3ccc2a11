/*
 * bedplate_hal_bench BACKEND MODULE ROUNDS: what the HAL adds, from C.
 *
 * Prints `name value` lines, nanoseconds, one per round and quantity, rounds interleaved:
 *   table_call        timeline.query through the completed table (the peer of a function table)
 *   direct_call       the same loop around a local function that may not be inlined
 *   submit_N          submit of a batch of N launches of an empty kernel, per command
 *   command_N         submit and wait, per command, grid of one block
 *   grid_T            one launch of T blocks inside a batch of 300, per command
 *   one_launch        submit and wait of a single launch
 * benchmarks/hal turns them into measurements.
 */
#include "../error.h"
#include "bedplate/hal_loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_COMMANDS 1200

static const bp_api *api;
static uint64_t device, queue, timeline, now_value;
static bp_launch_command commands[MOST_COMMANDS];
static const bp_command *pointers[MOST_COMMANDS];

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static void must(int32_t status, const char *what) {
    char text[BP_ERROR_BYTES] = "";
    if (status == BP_OK)
        return;
    bp_hal_last_error(text, sizeof(text), NULL);
    if (!text[0] && api)
        api->core->last_error(text, sizeof(text), NULL);
    fprintf(stderr, "%s: status %d: %s\n", what, status, text);
    exit(1);
}

static void open_all(const char *backend, const char *module_path) {
    bp_load_options options = {.head = {1, sizeof(options)}, .path = {backend, strlen(backend)}};
    bp_module_source source = {.head = {1, sizeof(source)},
                               .kind = BP_MODULE_NATIVE,
                               .path = {module_path, strlen(module_path)}};
    bp_queue_info info = {.head = {1, sizeof(info)}};
    bp_text name = {"nothing", 7};
    uint64_t module, kernel;
    must(bp_hal_load(&options, &api), "load");
    must(api->core->open(0, &device), "open");
    must(api->queue->create(device, &info, &queue), "queue");
    must(api->timeline->create(device, 0, &timeline), "timeline");
    must(api->module->load(device, &source, &module), "module");
    must(api->module->kernel(device, module, &name, &kernel), "kernel");
    for (int i = 0; i < MOST_COMMANDS; i++) {
        commands[i] = (bp_launch_command){.head = {1, sizeof(commands[i])},
                                          .kind = BP_COMMAND_LAUNCH,
                                          .kernel = kernel,
                                          .grid = {1, 1, 1},
                                          .block = {1, 1, 1}};
        pointers[i] = (const bp_command *)(const void *)&commands[i];
    }
}

/* Submits the first `count` commands and waits; the time of submit alone goes to *submitted. */
static uint64_t run(uint32_t count, uint32_t blocks, uint64_t *submitted) {
    bp_fence done = {timeline, ++now_value};
    bp_batch batch = {.head = {1, sizeof(batch)},
                      .signal = &done,
                      .signal_count = 1,
                      .commands = pointers,
                      .command_count = count};
    for (uint32_t i = 0; i < count; i++)
        commands[i].grid[0] = blocks;
    uint64_t start = now_ns();
    must(api->queue->submit(device, queue, &batch), "submit");
    *submitted = now_ns() - start;
    must(api->timeline->wait_host(device, timeline, now_value, start + 10000000000ull), "wait");
    return now_ns() - start;
}

static void measure(uint32_t count, uint32_t blocks, const char *submit_name,
                    const char *whole_name) {
    uint64_t submitted, whole = run(count, blocks, &submitted);
    if (submit_name)
        printf("%s %.3f\n", submit_name, (double)submitted / count);
    printf("%s %.3f\n", whole_name, (double)whole / count);
}

static int32_t __attribute__((noinline)) local(uint64_t a, uint64_t b, uint64_t *out) {
    __asm__ volatile("" ::: "memory");
    *out = a + b;
    return 0;
}

static void measure_calls(void) {
    enum { CALLS = 20000 };
    uint64_t value, start = now_ns();
    for (int i = 0; i < CALLS; i++)
        local(device, timeline, &value);
    printf("direct_call %.3f\n", (double)(now_ns() - start) / CALLS);
    start = now_ns();
    for (int i = 0; i < CALLS; i++)
        must(api->timeline->query(device, timeline, &value), "query");
    printf("table_call %.3f\n", (double)(now_ns() - start) / CALLS);
}

int main(int count, char **words) {
    if (count != 4) {
        fprintf(stderr, "usage: bedplate_hal_bench BACKEND MODULE ROUNDS\n");
        return 2;
    }
    open_all(words[1], words[2]);
    for (int round = 0; round < atoi(words[3]); round++) {
        measure_calls();
        measure(1, 1, NULL, "one_launch");
        measure(64, 1, "submit_64", "command_64");
        measure(300, 1, "submit_300", "command_300");
        measure(1200, 1, "submit_1200", "command_1200");
        measure(300, 2, NULL, "grid_2");
        measure(300, 16, NULL, "grid_16");
    }
    must(api->core->close(device), "close");
    return 0;
}
