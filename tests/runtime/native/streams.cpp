/*
 * streams BACKEND SECONDS: the scheduler under a sanitizer, over a backend under the same.
 *
 * Threads submit to shared streams through small rings, wait for each other, fail, reset, record,
 * replay, and stop in the middle; each round checks that every batch was handed over or failed,
 * and that streams that did not fail ran in order. The sanitizer finds what is wrong between
 * threads. Exits with 0, or 1 with the first broken promise.
 */
#include <bedplate/hal_loader.h>
#include <bedplate/streams.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

namespace {

constexpr int PRODUCERS = 3;
constexpr int STREAMS = 4;
constexpr int BATCHES = 60;

const bp_api *api;

uint64_t now_ns() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t soon() {
    return now_ns() + 20'000'000'000u;
}

[[noreturn]] void broken(const char *what, int line, int64_t got) {
    char text[512] = "";
    bp_runtime_scheduler_last_error(text, sizeof(text));
    fprintf(stderr, "line %d: %s: %lld: %s\n", line, what, static_cast<long long>(got), text);
    exit(1);
}

#define OK(call)                                                                                   \
    do {                                                                                           \
        int32_t got = (call);                                                                      \
        if (got != BP_OK)                                                                          \
            broken(#call, __LINE__, got);                                                          \
    } while (0)
#define MUST(condition, value)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            broken(#condition, __LINE__, static_cast<int64_t>(value));                             \
    } while (0)

bp_batch batch_of(uint64_t tag) {
    bp_batch batch = {};
    batch.head = {1, sizeof(batch)};
    batch.tag = tag;
    return batch;
}

struct Round {
    uint64_t device = 0, memory = 0, gate = 0;
    uint64_t timelines[STREAMS] = {};
    uint32_t streams[STREAMS] = {}, queues[2] = {};
    bp_runtime_scheduler *scheduler = nullptr;
    std::atomic<uint64_t> accepted{0}, refused{0};
};

void open(Round &round, uint32_t capacity, uint32_t window, uint32_t flags) {
    bp_memory_info info = {};
    info.head = {1, sizeof(info)};
    info.bytes = 4096;
    bp_runtime_scheduler_options options = {capacity, 2, 2, 0};
    OK(api->core->open(0, &round.device));
    OK(api->mem->create(round.device, &info, &round.memory));
    OK(api->timeline->create(round.device, 0, &round.gate));
    OK(bp_runtime_scheduler_open(api, round.device, &options, &round.scheduler));
    OK(bp_runtime_scheduler_queue(round.scheduler, 0, window, 0, &round.queues[0]));
    OK(bp_runtime_scheduler_queue(round.scheduler, 1, 0, flags, &round.queues[1]));
    for (int i = 0; i < STREAMS; i++) {
        OK(api->timeline->create(round.device, 0, &round.timelines[i]));
        OK(bp_runtime_scheduler_stream(round.scheduler, round.queues[i % 2], i, round.timelines[i],
                                       0, &round.streams[i]));
    }
}

void close(Round &round) {
    OK(bp_runtime_scheduler_close(round.scheduler));
    OK(api->core->close(round.device));
}

/* Fills a word of its stream; waits now and then for another stream, which waits for no later. */
void produce(Round &round, int producer, bool fail) {
    for (int i = 0; i < BATCHES; i++) {
        int of = (producer + i) % STREAMS;
        bp_fill_command fill = {};
        fill.head = {1, sizeof(fill)};
        fill.kind = BP_COMMAND_FILL;
        fill.destination = {round.memory, static_cast<uint64_t>(of) * 64, 64};
        fill.pattern = static_cast<uint32_t>(i);
        fill.pattern_bytes = 4;
        // Past the end of the memory: the device refuses it.
        if (fail && producer == 0 && i == BATCHES / 2)
            fill.destination.offset = 1 << 20;
        const bp_command *command = reinterpret_cast<const bp_command *>(&fill);
        bp_batch batch = batch_of(static_cast<uint64_t>(producer * 1000 + i));
        bp_fence wait = {round.gate, 1};
        batch.commands = &command;
        batch.command_count = 1;
        batch.wait = &wait;
        batch.wait_count = i % 5 == 0;
        uint64_t value = 0;
        uint64_t wait_by = fail && i % 11 == 3 ? now_ns() + 1'000'000 : BP_RUNTIME_NEVER;
        int32_t status = bp_runtime_scheduler_submit(round.scheduler, round.streams[of], &batch,
                                                     wait_by, soon(), &value);
        if (status == BP_OK)
            round.accepted++;
        else
            round.refused++;
        MUST(status == BP_OK || status == BP_CANCELLED, status);
        memset(&fill, 0xff, sizeof(fill));
    }
}

uint64_t settled(Round &round, uint64_t *failed) {
    uint64_t sum = 0;
    *failed = 0;
    for (uint32_t queue : round.queues) {
        bp_runtime_queue_stats stats;
        OK(bp_runtime_scheduler_stats(round.scheduler, queue, &stats));
        sum += stats.handed + stats.failed;
        *failed += stats.failed;
        MUST(stats.overtaken_most <= 2, stats.overtaken_most);
    }
    return sum;
}

void plain(uint32_t capacity, uint32_t window, uint32_t flags) {
    Round round;
    uint64_t failed;
    open(round, capacity, window, flags);
    std::vector<std::thread> threads;
    for (int i = 0; i < PRODUCERS; i++)
        threads.emplace_back(produce, std::ref(round), i, false);
    // Figures of a moment: what waits is no more than was ever submitted, and none below zero.
    std::atomic<bool> ended{false};
    std::thread reader([&] {
        while (!ended)
            for (uint32_t queue : round.queues) {
                bp_runtime_queue_stats stats;
                OK(bp_runtime_scheduler_stats(round.scheduler, queue, &stats));
                MUST(stats.waiting <= PRODUCERS * BATCHES, stats.waiting);
                MUST(stats.handed + stats.failed <= stats.submitted, stats.handed);
            }
    });
    OK(bp_runtime_scheduler_signal(round.scheduler, round.gate, 1));
    for (auto &thread : threads)
        thread.join();
    uint64_t values = 0;
    for (int i = 0; i < STREAMS; i++) {
        uint64_t count;
        bp_runtime_scheduler_handed(round.scheduler, round.streams[i], &count);
        values += PRODUCERS * BATCHES / STREAMS;
        OK(bp_runtime_scheduler_wait(round.scheduler, round.timelines[i],
                                     PRODUCERS * BATCHES / STREAMS, soon()));
    }
    ended = true;
    reader.join();
    MUST(settled(round, &failed) == values && failed == 0, failed);
    close(round);
}

void failing(bool stop) {
    Round round;
    uint64_t failed = 0;
    open(round, 8, stop ? 0 : 3, 0);
    std::vector<std::thread> threads;
    for (int i = 0; i < PRODUCERS; i++)
        threads.emplace_back(produce, std::ref(round), i, true);
    std::thread waiter([&] {
        for (uint64_t value = 1; value <= 20; value++) {
            int32_t status = bp_runtime_scheduler_wait(round.scheduler, round.timelines[0], value,
                                                       now_ns() + 30'000'000);
            MUST(status <= BP_OK, status);
        }
    });
    OK(bp_runtime_scheduler_signal(round.scheduler, round.gate, 1));
    if (stop)
        OK(bp_runtime_scheduler_stop(round.scheduler, now_ns() + 5'000'000));
    for (auto &thread : threads)
        thread.join();
    waiter.join();
    uint64_t until = soon();
    while (settled(round, &failed) != round.accepted && now_ns() < until)
        std::this_thread::yield();
    MUST(settled(round, &failed) == round.accepted, failed);
    MUST(round.accepted + round.refused == PRODUCERS * BATCHES, round.refused);
    MUST(stop || failed > 0, failed);
    if (!stop) {
        uint64_t fresh, value;
        bp_batch batch = batch_of(9);
        OK(api->timeline->create(round.device, 0, &fresh));
        OK(bp_runtime_scheduler_reset(round.scheduler, round.streams[0], fresh, 0));
        OK(bp_runtime_scheduler_submit(round.scheduler, round.streams[0], &batch, BP_RUNTIME_NEVER,
                                       soon(), &value));
        OK(bp_runtime_scheduler_wait(round.scheduler, fresh, value, soon()));
    }
    close(round);
}

void graphs() {
    Round round;
    open(round, 8, 0, 0);
    bp_runtime_recording *recording;
    bp_runtime_graph *graph;
    OK(bp_runtime_graph_begin(round.scheduler, round.streams, 2, &recording));
    bp_fence last = {};
    for (int i = 0; i < 6; i++) {
        bp_batch batch = batch_of(static_cast<uint64_t>(i));
        batch.wait = &last;
        batch.wait_count = i > 0;
        bp_fence next = {round.timelines[i % 2], 0};
        OK(bp_runtime_scheduler_submit(round.scheduler, round.streams[i % 2], &batch,
                                       BP_RUNTIME_NEVER, soon(), &next.value));
        last = next;
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++)
        threads.emplace_back([&round, i] {
            for (uint64_t n = 0; n < 20; n++) {
                bp_batch batch = batch_of(n);
                uint64_t value;
                OK(bp_runtime_scheduler_submit(round.scheduler, round.streams[i], &batch,
                                               BP_RUNTIME_NEVER, soon(), &value));
            }
        });
    for (auto &thread : threads)
        thread.join();
    threads.clear();
    OK(bp_runtime_graph_end(round.scheduler, recording, &graph));
    bp_runtime_graph_info info;
    OK(bp_runtime_graph_info_of(graph, &info));
    MUST(info.batches == 46, info.batches);
    for (int i = 0; i < PRODUCERS; i++)
        threads.emplace_back([&round, graph] {
            for (int n = 0; n < 20; n++) {
                bp_batch fences = batch_of(7);
                uint64_t value;
                OK(bp_runtime_graph_launch(round.scheduler, round.streams[0], graph, &fences,
                                           BP_RUNTIME_NEVER, soon(), &value));
            }
        });
    for (auto &thread : threads)
        thread.join();
    OK(bp_runtime_graph_release(graph));
    OK(bp_runtime_scheduler_wait(round.scheduler, round.timelines[0], 20 * PRODUCERS, soon()));
    close(round);
}

} // namespace

int main(int count, char **words) {
    if (count != 3)
        return 2;
    bp_load_options options = {};
    options.head = {1, sizeof(options)};
    options.path = {words[1], strlen(words[1])};
    OK(bp_hal_load(&options, &api));
    uint64_t end = now_ns() + static_cast<uint64_t>(atof(words[2]) * 1e9);
    do {
        plain(4, 0, 0);
        plain(16, 2, BP_RUNTIME_QUEUE_DEVICE_WAITS);
        failing(false);
        failing(true);
        graphs();
    } while (now_ns() < end);
    puts("done");
    return 0;
}
