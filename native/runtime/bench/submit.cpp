/*
 * bedplate_runtime_bench_submit ROUNDS [BACKEND]: what a submit and a parked wake cost.
 *
 * Prints `name value` lines in nanoseconds, over a device of nothing or a backend:
 *   submit        one submit of an empty batch, mean of a burst of 1024 that the ring holds; one
 *                 line a round, a million batches in 976 rounds
 *   sustained     the same without a pause between bursts, mean over all rounds: what the slowest
 *                 of submitter, worker and device takes
 *   wake          from the host's signal of a timeline to the device's submit of the batch that
 *                 was parked for it; device of nothing only, one line a round
 *   futex         what of that the system takes: from waking a thread to its first instruction
 */
#include <algorithm>
#include <atomic>
#include <bedplate/hal_loader.h>
#include <bedplate/streams.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <linux/futex.h>
#include <memory>
#include <sched.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace {

constexpr int BURST = 1024;
const bp_api *api;
uint64_t device;

uint64_t now_ns() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

void must(int32_t status, const char *what) {
    if (status == BP_OK)
        return;
    char text[512] = "";
    bp_runtime_scheduler_last_error(text, sizeof(text));
    fprintf(stderr, "%s: status %d: %s\n", what, status, text);
    exit(1);
}

// A device of nothing: a submit signals at once. Timelines are numbers from 1.
std::atomic<uint64_t> values[64];
std::atomic<uint64_t> made{0}, submitted_at{0};

int32_t nothing_create(uint64_t, uint64_t initial, uint64_t *out) {
    *out = ++made;
    values[*out] = initial;
    return BP_OK;
}
int32_t nothing_signal(uint64_t, uint64_t timeline, uint64_t value) {
    values[timeline].store(value, std::memory_order_release);
    return BP_OK;
}
int32_t nothing_query(uint64_t, uint64_t timeline, uint64_t *value) {
    *value = values[timeline].load(std::memory_order_acquire);
    return BP_OK;
}
int32_t nothing_wait(uint64_t, uint64_t timeline, uint64_t value, uint64_t deadline_ns) {
    timespec nap = {0, 1000000};
    while (values[timeline].load(std::memory_order_acquire) < value) {
        if (now_ns() >= deadline_ns)
            return BP_DEADLINE;
        nanosleep(&nap, nullptr);
    }
    return BP_OK;
}
int32_t nothing_destroy(uint64_t, uint64_t) {
    return BP_OK;
}
int32_t nothing_queue(uint64_t, const bp_queue_info *, uint64_t *out) {
    *out = 1;
    return BP_OK;
}
int32_t nothing_submit(uint64_t, uint64_t, const bp_batch *batch) {
    if (batch->tag)
        submitted_at.store(now_ns(), std::memory_order_release);
    for (uint32_t i = 0; i < batch->signal_count; i++)
        values[batch->signal[i].timeline].store(batch->signal[i].value, std::memory_order_release);
    return BP_OK;
}

void open_nothing() {
    static bp_queue queue = {};
    static bp_timeline timeline = {};
    static bp_api table = {};
    queue.create = nothing_queue;
    queue.submit = nothing_submit;
    queue.destroy = nothing_destroy;
    timeline.create = nothing_create;
    timeline.signal = nothing_signal;
    timeline.query = nothing_query;
    timeline.wait_host = nothing_wait;
    timeline.destroy = nothing_destroy;
    table.queue = &queue;
    table.timeline = &timeline;
    api = &table;
}

void open_backend(const char *path) {
    bp_load_options options = {};
    options.head = {1, sizeof(options)};
    options.path = {path, strlen(path)};
    must(bp_hal_load(&options, &api), "load");
    must(api->core->open(0, &device), "open");
}

struct Stage {
    bp_runtime_scheduler *scheduler = nullptr;
    uint64_t timeline = 0;
    uint32_t queue = 0, stream = 0;
    uint64_t value = 0;

    Stage() {
        must(bp_runtime_scheduler_open(api, device, nullptr, &scheduler), "open");
        must(bp_runtime_scheduler_queue(scheduler, 0, 0, 0, &queue), "queue");
        must(api->timeline->create(device, 0, &timeline), "timeline");
        must(bp_runtime_scheduler_stream(scheduler, queue, 0, timeline, 0, &stream), "stream");
    }
    ~Stage() {
        must(bp_runtime_scheduler_close(scheduler), "close");
    }
    void submit(const bp_batch &batch) {
        must(bp_runtime_scheduler_submit(scheduler, stream, &batch, BP_RUNTIME_NEVER,
                                         BP_RUNTIME_NEVER, &value),
             "submit");
    }
    void wait() {
        must(bp_runtime_scheduler_wait(scheduler, timeline, value, BP_RUNTIME_NEVER - 1), "wait");
    }
};

void measure_submit(Stage &stage, int rounds) {
    bp_batch batch = {};
    batch.head = {1, sizeof(batch)};
    for (int round = 0; round < rounds; round++) {
        uint64_t start = now_ns();
        for (int i = 0; i < BURST; i++)
            stage.submit(batch);
        printf("submit %.1f\n", static_cast<double>(now_ns() - start) / BURST);
        stage.wait();
    }
    uint64_t start = now_ns();
    for (int i = 0; i < rounds * BURST; i++)
        stage.submit(batch);
    stage.wait();
    printf("sustained %.1f\n", static_cast<double>(now_ns() - start) / (rounds * BURST));
}

void measure_wake(Stage &stage, int rounds) {
    uint64_t gate = 0;
    must(api->timeline->create(device, 0, &gate), "timeline");
    for (int round = 1; round <= rounds; round++) {
        bp_batch batch = {};
        bp_fence wait = {gate, static_cast<uint64_t>(round)};
        batch.head = {1, sizeof(batch)};
        batch.tag = 1;
        batch.wait = &wait;
        batch.wait_count = 1;
        stage.submit(batch);
        timespec nap = {0, 300000}; // until the worker sleeps
        nanosleep(&nap, nullptr);
        submitted_at = 0;
        uint64_t start = now_ns();
        must(bp_runtime_scheduler_signal(stage.scheduler, gate, wait.value), "signal");
        while (!submitted_at.load(std::memory_order_acquire))
            sched_yield();
        printf("wake %llu\n", static_cast<unsigned long long>(submitted_at - start));
        stage.wait();
    }
}

void measure_futex(int rounds) {
    static std::atomic<uint32_t> word{0};
    static std::atomic<uint64_t> woken{0};
    std::thread sleeper([rounds] {
        for (int round = 0; round < rounds; round++) {
            auto seen = static_cast<uint32_t>(round);
            while (word.load() == seen)
                syscall(SYS_futex, &word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, seen, nullptr, nullptr,
                        0);
            woken.store(now_ns(), std::memory_order_release);
        }
    });
    for (int round = 0; round < rounds; round++) {
        timespec nap = {0, 300000};
        nanosleep(&nap, nullptr);
        woken = 0;
        uint64_t start = now_ns();
        word.fetch_add(1);
        syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
        while (!woken.load(std::memory_order_acquire))
            sched_yield();
        printf("futex %llu\n", static_cast<unsigned long long>(woken - start));
    }
    sleeper.join();
}

} // namespace

int main(int count, char **words) {
    if (count < 2 || count > 3) {
        fprintf(stderr, "usage: bedplate_runtime_bench_submit ROUNDS [BACKEND]\n");
        return 2;
    }
    if (count == 3)
        open_backend(words[2]);
    else
        open_nothing();
    Stage stage;
    int rounds = atoi(words[1]);
    measure_submit(stage, rounds);
    if (count == 2) {
        measure_wake(stage, rounds);
        measure_futex(rounds);
    }
    return 0;
}
