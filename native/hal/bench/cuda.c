// clang-format off
/*
 * bedplate_hal_bench_cuda BACKEND PTX ROUNDS: what the HAL adds to the CUDA driver, from C.
 *
 * Both sides run in this process, on one context, with the same kernel, interleaved in every round.
 * Prints `name value` lines, one or more per round and quantity; `_native` is the driver itself:
 *   call_N         ns per launch to hand over N launches, nothing waited for
 *   rate_N         ns per launch for 1,280 launches in batches of N, until the last is done
 *   signal_1       the same with a signal behind every launch (native: an event, and a word)
 *   round_trip     ns for one launch, until the host knows that it is done
 *   copy_*         GB/s of one large copy, until it is done
 *   graph_node     ns per node of a graph of 1,000 launches, until it is done
 *   query          ns for a look at a timeline that is there (native: an event)
 * benchmarks/hal/cuda.py turns them into measurements.
 */
// clang-format on
#include "../cuda/driver.h"
#include "bedplate/hal_loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NODES     1000
#define LAUNCHES  1280
#define COPY      (1ull << 30)
#define HOST_COPY (1ull << 28)
/* In each round: a launch takes microseconds that vary, and what is added is a fraction of one. */
#define HAND_OVERS 16
#define RUNS       2

static const bp_api *api;
static uint64_t device, queue, timeline, reached, graph;
static bp_launch_command command;
static const bp_command *pointers[NODES];
static bp_argument arguments[4];
static float factor = 1.0f;
static uint32_t count;

static bp_cu_stream stream;
static bp_cu_event event;
static bp_cu_function function;
static bp_cu_graph_exec native_graph;
static bp_cu_address word, from, to, host_address;
static struct {
    uint64_t out, x;
    float a;
    uint32_t n;
} packed = {.a = 1.0f};
static uint64_t from_memory, to_memory, host_memory;

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static __attribute__((noinline, cold)) void stop(int32_t status, const char *what) {
    char text[BP_ERROR_BYTES] = "";
    bp_hal_last_error(text, sizeof(text), NULL);
    if (!text[0] && api)
        api->core->last_error(text, sizeof(text), NULL);
    fprintf(stderr, "%s: status %d: %s\n", what, status, text);
    exit(1);
}

/* Inside of what is measured: as cheap as what the driver's side has. */
static inline void must(int32_t status, const char *what) {
    if (status != BP_OK)
        stop(status, what);
}

static inline void driver(bp_cu_result result, const char *what) {
    if (result != BP_CU_SUCCESS && bp_cuda_check(result, what)) {
        fprintf(stderr, "%s\n", bp_error_text());
        exit(1);
    }
}

static uint64_t memory_of(uint64_t bytes, bp_cu_address *address) {
    bp_memory_info info = {.head = {1, sizeof(info)}, .bytes = bytes};
    uint64_t memory = 0;
    must(api->mem->create(device, &info, &memory), "memory");
    must(api->mem->describe(device, memory, &info), "describe");
    *address = info.address;
    return memory;
}

static void open_hal(const char *backend, const char *ptx, uint64_t bytes) {
    bp_load_options options = {.head = {1, sizeof(options)}, .path = {backend, strlen(backend)}};
    bp_module_source source = {
        .head = {1, sizeof(source)}, .kind = BP_MODULE_PTX, .data = ptx, .bytes = bytes};
    bp_queue_info info = {.head = {1, sizeof(info)}};
    bp_text name = {"scale", 5};
    uint64_t module, kernel;
    must(bp_hal_load(&options, &api), "load");
    must(api->core->open(0, &device), "open");
    must(api->queue->create(device, &info, &queue), "queue");
    must(api->timeline->create(device, 0, &timeline), "timeline");
    must(api->module->load(device, &source, &module), "module");
    must(api->module->kernel(device, module, &name, &kernel), "kernel");
    from_memory = memory_of(COPY, &from);
    to_memory = memory_of(COPY, &to);
    arguments[0] = (bp_argument){.kind = BP_ARGUMENT_RANGE, .range = {to_memory, 0, 4096}};
    arguments[1] = (bp_argument){.kind = BP_ARGUMENT_RANGE, .range = {from_memory, 0, 4096}};
    arguments[2] = (bp_argument){.kind = BP_ARGUMENT_BYTES, .bytes = 4, .data = &factor};
    arguments[3] = (bp_argument){.kind = BP_ARGUMENT_BYTES, .bytes = 4, .data = &count};
    command = (bp_launch_command){.head = {1, sizeof(command)},
                                  .kind = BP_COMMAND_LAUNCH,
                                  .kernel = kernel,
                                  .grid = {1, 1, 1},
                                  .block = {32, 1, 1},
                                  .arguments = arguments,
                                  .argument_count = 4};
    for (int i = 0; i < NODES; i++)
        pointers[i] = (const bp_command *)(const void *)&command;
}

static void native_launch(void) {
    size_t bytes = sizeof(packed);
    void *extra[] = {BP_CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, BP_CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, BP_CU_LAUNCH_PARAM_END};
    driver(bp_cu.launch(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, extra), "launch");
}

static void submit(uint32_t commands, int signal) {
    bp_fence done = {timeline, reached + 1};
    bp_batch batch = {.head = {1, sizeof(batch)},
                      .signal = &done,
                      .signal_count = signal ? 1 : 0,
                      .commands = pointers,
                      .command_count = commands};
    must(api->queue->submit(device, queue, &batch), "submit");
    reached += signal ? 1 : 0;
}

static void await(void) {
    must(api->timeline->wait_host(device, timeline, reached, now_ns() + 10000000000ull), "wait");
}

/* The same context, stream and kernel for the driver's side. */
static void open_native(const char *ptx) {
    bp_cu_context context;
    bp_cu_module module;
    void *host = NULL;
    must(bp_cuda_driver_open(), "the driver");
    driver(bp_cu.context_retain(&context, 0), "context");
    driver(bp_cu.context_set(context), "context");
    driver(bp_cu.stream_create(&stream, BP_CU_STREAM_NON_BLOCKING, 0), "stream");
    driver(bp_cu.event_create(&event, BP_CU_EVENT_DISABLE_TIMING), "event");
    driver(bp_cu.module_load(&module, ptx, 0, NULL, NULL), "module");
    driver(bp_cu.module_function(&function, module, "scale"), "function");
    driver(bp_cu.host_alloc(&host, HOST_COPY, BP_CU_MEMHOSTALLOC_PORTABLE), "host memory");
    memset(host, 7, HOST_COPY);
    driver(bp_cu.host_address(&host_address, host, 0), "host address");
    must(api->mem->pin(device, host, HOST_COPY, &host_memory), "pin");
    void *line = NULL;
    driver(bp_cu.host_alloc(&line, 64, BP_CU_MEMHOSTALLOC_PORTABLE), "word");
    driver(bp_cu.host_address(&word, line, 0), "word");
    packed.out = to;
    packed.x = from;
}

static void record_graphs(void) {
    bp_cu_graph recorded;
    driver(bp_cu.capture_begin(stream, BP_CU_STREAM_CAPTURE_MODE_RELAXED), "capture");
    for (int i = 0; i < NODES; i++)
        native_launch();
    driver(bp_cu.capture_end(stream, &recorded), "capture");
    driver(bp_cu.graph_instantiate(&native_graph, recorded, 0), "instantiate");
    must(api->capture->begin(device, queue), "begin");
    submit(NODES, 0);
    must(api->capture->end(device, queue, &graph), "end");
}

static void idle(void) {
    driver(bp_cu.context_synchronize(), "synchronize");
}

/* ns per launch to hand over 64. */
static double hand_over(uint32_t commands) {
    idle();
    uint64_t start = now_ns();
    for (uint32_t i = 0; i < 64; i += commands ? commands : 1) {
        if (commands)
            submit(commands, 0);
        else
            native_launch();
    }
    return (double)(now_ns() - start) / 64;
}

/* ns per launch until the last of them is done; 0 commands a batch is the driver alone. */
static double run_all(uint32_t commands) {
    idle();
    uint64_t start = now_ns();
    for (uint32_t i = commands; commands && i < LAUNCHES; i += commands)
        submit(commands, 0);
    for (uint32_t i = 0; !commands && i < LAUNCHES; i++)
        native_launch();
    if (commands) {
        submit(commands, 1);
        await();
    } else {
        driver(bp_cu.stream_synchronize(stream), "synchronize");
    }
    return (double)(now_ns() - start) / LAUNCHES;
}

/* Both sides, `times` times, in an order that changes with each time. */
static void measure_pair(const char *name, uint32_t commands, double (*side)(uint32_t), int times) {
    for (int i = 0; i < times; i++) {
        double ours = i & 1 ? side(commands) : 0, native = side(0);
        printf("%s_%u %.3f\n", name, commands, i & 1 ? ours : side(commands));
        printf("%s_%u_native %.3f\n", name, commands, native);
    }
}

static void measure_signals(void) {
    static uint64_t value;
    idle();
    uint64_t start = now_ns();
    for (uint32_t i = 0; i < LAUNCHES; i++)
        submit(1, 1);
    await();
    printf("signal_1 %.3f\n", (double)(now_ns() - start) / LAUNCHES);
    idle();
    start = now_ns();
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        native_launch();
        driver(bp_cu.event_record(event, stream), "record");
    }
    driver(bp_cu.stream_synchronize(stream), "synchronize");
    printf("signal_1_native %.3f\n", (double)(now_ns() - start) / LAUNCHES);
    start = now_ns();
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        native_launch();
        driver(bp_cu.stream_write_value(stream, word, ++value, 0), "write");
    }
    driver(bp_cu.stream_synchronize(stream), "synchronize");
    printf("signal_1_word_native %.3f\n", (double)(now_ns() - start) / LAUNCHES);
}

static void measure_round_trip(void) {
    enum { TURNS = 20 };
    idle();
    uint64_t start = now_ns();
    for (int i = 0; i < TURNS; i++) {
        submit(1, 1);
        await();
    }
    printf("round_trip %.3f\n", (double)(now_ns() - start) / TURNS);
    start = now_ns();
    for (int i = 0; i < TURNS; i++) {
        native_launch();
        driver(bp_cu.stream_synchronize(stream), "synchronize");
    }
    printf("round_trip_native %.3f\n", (double)(now_ns() - start) / TURNS);
}

static void measure_copy(const char *name, bp_range target, bp_range source,
                         bp_cu_address target_at, bp_cu_address source_at) {
    bp_copy_command copy = {.head = {1, sizeof(copy)},
                            .kind = BP_COMMAND_COPY,
                            .destination = target,
                            .source = source};
    const bp_command *one = (const bp_command *)(const void *)&copy;
    bp_fence done = {timeline, reached + 1};
    bp_batch batch = {.head = {1, sizeof(batch)},
                      .signal = &done,
                      .signal_count = 1,
                      .commands = &one,
                      .command_count = 1};
    idle();
    uint64_t start = now_ns();
    must(api->queue->submit(device, queue, &batch), "submit");
    reached++;
    await();
    printf("copy_%s %.4f\n", name, (double)target.length / (double)(now_ns() - start));
    idle();
    start = now_ns();
    driver(bp_cu.copy(target_at, source_at, target.length, stream), "copy");
    driver(bp_cu.stream_synchronize(stream), "synchronize");
    printf("copy_%s_native %.4f\n", name, (double)target.length / (double)(now_ns() - start));
}

static void measure_graph(void) {
    bp_fence done = {timeline, reached + 1};
    bp_batch fences = {.head = {1, sizeof(fences)}, .signal = &done, .signal_count = 1};
    idle();
    uint64_t start = now_ns();
    must(api->capture->launch(device, queue, graph, &fences), "launch");
    reached++;
    await();
    printf("graph_node %.3f\n", (double)(now_ns() - start) / NODES);
    idle();
    start = now_ns();
    driver(bp_cu.graph_launch(native_graph, stream), "launch");
    driver(bp_cu.stream_synchronize(stream), "synchronize");
    printf("graph_node_native %.3f\n", (double)(now_ns() - start) / NODES);
}

static void measure_query(void) {
    enum { CALLS = 2000 };
    uint64_t value, start = now_ns();
    for (int i = 0; i < CALLS; i++)
        must(api->timeline->query(device, timeline, &value), "query");
    printf("query %.3f\n", (double)(now_ns() - start) / CALLS);
    start = now_ns();
    for (int i = 0; i < CALLS; i++)
        driver(bp_cu.event_query(event), "query");
    printf("query_native %.3f\n", (double)(now_ns() - start) / CALLS);
}

int main(int words, char **word_list) {
    static char ptx[1 << 16];
    FILE *file = words == 4 ? fopen(word_list[2], "rb") : NULL;
    size_t bytes = file ? fread(ptx, 1, sizeof(ptx) - 1, file) : 0;
    if (!bytes) {
        fprintf(stderr, "usage: bedplate_hal_bench_cuda BACKEND PTX ROUNDS\n");
        return 2;
    }
    fclose(file);
    open_hal(word_list[1], ptx, bytes);
    open_native(ptx);
    record_graphs();
    for (int round = -3; round < atoi(word_list[3]); round++) {
        /* The first rounds warm up; what they say is forgotten by their negative number. */
        printf("round %d\n", round);
        for (uint32_t commands = 1; commands <= 64; commands *= 64) {
            measure_pair("call", commands, hand_over, HAND_OVERS);
            measure_pair("rate", commands, run_all, RUNS);
        }
        measure_signals();
        measure_round_trip();
        measure_copy("d2d", (bp_range){to_memory, 0, COPY}, (bp_range){from_memory, 0, COPY}, to,
                     from);
        measure_copy("h2d", (bp_range){to_memory, 0, HOST_COPY},
                     (bp_range){host_memory, 0, HOST_COPY}, to, host_address);
        measure_copy("d2h", (bp_range){host_memory, 0, HOST_COPY},
                     (bp_range){to_memory, 0, HOST_COPY}, host_address, to);
        measure_graph();
        measure_query();
    }
    must(api->core->close(device), "close");
    return 0;
}
