/* See scheduler.hpp. */
#include "scheduler.hpp"

namespace bp::stream {

namespace {
/* A host that waits looks at the table of failures so often, besides being woken by the HAL. */
constexpr uint64_t SLICE_NS = 10'000'000;
} // namespace

Scheduler::Scheduler(const bp_api *api, uint64_t device,
                     const bp_runtime_scheduler_options &options)
    : Ground(api, device, options.watchers), options_(options) {}

Scheduler::~Scheduler() {
    stop(0);
    if (recorder_)
        api->queue->destroy(device, recorder_);
}

Stream *Scheduler::stream(uint32_t number) noexcept {
    if (number < stream_count_.load(std::memory_order_acquire))
        return streams_[number].get();
    fail(BP_INVALID_ARGUMENT, "there is no stream %u", number);
    return nullptr;
}

Worker *Scheduler::worker(uint32_t number) noexcept {
    if (number < worker_count_.load(std::memory_order_acquire))
        return workers_[number].get();
    fail(BP_INVALID_ARGUMENT, "there is no queue %u", number);
    return nullptr;
}

int32_t Scheduler::add_queue(int32_t priority, uint32_t window, uint32_t flags, uint32_t *out) {
    if (window > 64)
        return fail(BP_INVALID_ARGUMENT, "a window of %u batches; 64 is the most", window);
    if (flags & ~BP_RUNTIME_QUEUE_DEVICE_WAITS)
        return fail(BP_INVALID_ARGUMENT, "a queue's flags are 0x%x", flags);
    std::lock_guard guard(lock_);
    uint32_t number = worker_count_.load(std::memory_order_relaxed);
    if (stopped_)
        return fail(BP_CANCELLED, "the scheduler stopped");
    if (number == MOST_QUEUES)
        return fail(BP_OUT_OF_MEMORY, "a scheduler has %u queues at most", MOST_QUEUES);
    bp_queue_info info = {};
    info.head = {1, sizeof(info)};
    info.priority = priority;
    uint64_t queue = 0;
    char text[TEXT_BYTES];
    int32_t status = api->queue->create(device, &info, &queue);
    if (status) {
        ask(api, status, text);
        return fail(status, "%s", text);
    }
    try {
        workers_[number] = std::make_unique<Worker>(*this, queue, options_, window, flags);
    } catch (...) {
        api->queue->destroy(device, queue);
        throw;
    }
    worker_count_.store(number + 1, std::memory_order_release);
    *out = number;
    return BP_OK;
}

int32_t Scheduler::add_stream(uint32_t queue, int32_t priority, bp_fence at, uint32_t *out) {
    Worker *of = worker(queue);
    if (!of)
        return BP_INVALID_ARGUMENT;
    std::lock_guard guard(lock_);
    uint32_t number = stream_count_.load(std::memory_order_relaxed);
    if (stopped_)
        return fail(BP_CANCELLED, "the scheduler stopped");
    if (number == MOST_STREAMS)
        return fail(BP_OUT_OF_MEMORY, "a scheduler has %u streams at most", MOST_STREAMS);
    streams_[number] = std::make_unique<Stream>(*of, priority, at);
    stream_count_.store(number + 1, std::memory_order_release);
    *out = number;
    return BP_OK;
}

int32_t Scheduler::reset(uint32_t number, bp_fence at) {
    Stream *of = stream(number);
    if (!of)
        return BP_INVALID_ARGUMENT;
    std::lock_guard guard(of->lock);
    if (of->recording)
        return fail(BP_BUSY, "stream %u is recording", number);
    of->last = at;
    return BP_OK;
}

/* The value and the place in the ring, which must agree; or that it is to be recorded. */
int32_t Scheduler::place(Stream &stream, Batch *batch, bool *recording, uint64_t *value) noexcept {
    std::lock_guard guard(stream.lock);
    if (stream.stopped)
        return fail(BP_CANCELLED, "the scheduler stopped");
    *recording = stream.recording != nullptr;
    if (*recording)
        return BP_OK;
    *value = ++stream.last.value;
    batch->set_own(stream.last);
    stream.worker.push(batch);
    return BP_OK;
}

int32_t Scheduler::submit(uint32_t number, const bp_batch *given, Graph *graph, uint64_t wait_by,
                          uint64_t room_by, uint64_t *value) {
    Stream *of = stream(number);
    if (!of)
        return BP_INVALID_ARGUMENT;
    Worker &worker = of->worker;
    int32_t status = BP_OK;
    Batch *batch = worker.take(room_by, status);
    if (!batch)
        return status;
    bool recording = false;
    try {
        status = batch->copy(given);
    } catch (...) {
        worker.give_back(batch);
        throw;
    }
    batch->stream = of;
    batch->deadline_ns = wait_by;
    batch->met = batch->overtaken = 0;
    batch->ready = batch->looked = false;
    if (graph && !status && batch->described.command_count)
        status = fail(BP_INVALID_ARGUMENT, "the fences of a graph's launch have %u commands",
                      batch->described.command_count);
    if (graph && !status) {
        batch->graph = graph;
        retain(graph);
    }
    if (!status)
        status = place(*of, batch, &recording, value);
    if (status || recording)
        worker.give_back(batch);
    else
        worker.post();
    if (status || !recording)
        return status;
    if (graph)
        return fail(BP_UNSUPPORTED, "a graph cannot be launched into a recording");
    std::lock_guard guard(of->lock);
    return of->recording ? of->recording->add(*of, given, value)
                         : fail(BP_BUSY, "the recording of stream %u ended meanwhile", number);
}

int32_t Scheduler::handed(uint32_t number, uint64_t *count) {
    Stream *of = stream(number);
    if (!of)
        return BP_INVALID_ARGUMENT;
    *count = of->handed.load(std::memory_order_acquire);
    return BP_OK;
}

int32_t Scheduler::wait(const bp_fence &fence, uint64_t deadline_ns) {
    char text[TEXT_BYTES];
    for (;;) {
        int32_t status = failures.find(fence, text);
        if (status)
            return fail(status, "%s", text);
        uint64_t slice = now_ns() + SLICE_NS;
        uint64_t until = slice < deadline_ns ? slice : deadline_ns;
        status = api->timeline->wait_host(device, fence.timeline, fence.value, until);
        if (status == BP_OK || (status == BP_DEADLINE && until != deadline_ns)) {
            if (status == BP_OK)
                return BP_OK;
            continue;
        }
        // What poisoned it may be told better than the HAL can.
        ask(api, status, text);
        int32_t known = failures.find(fence, text);
        return fail(known ? known : status, "%s", text);
    }
}

int32_t Scheduler::signal(const bp_fence &fence) {
    int32_t status = api->timeline->signal(device, fence.timeline, fence.value);
    if (status) {
        char text[TEXT_BYTES];
        ask(api, status, text);
        return fail(status, "%s", text);
    }
    uint32_t count = worker_count_.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; i++)
        if (workers_[i]->has_parked())
            workers_[i]->stir();
    return BP_OK;
}

int32_t Scheduler::stats(uint32_t queue, bp_runtime_queue_stats *out) {
    Worker *of = worker(queue);
    if (of)
        of->stats(*out);
    return of ? BP_OK : BP_INVALID_ARGUMENT;
}

int32_t Scheduler::begin(const uint32_t *numbers, uint32_t count, std::unique_ptr<Recording> &out) {
    std::lock_guard guard(lock_);
    out = std::make_unique<Recording>(api, device);
    int32_t status = count ? BP_OK : fail(BP_INVALID_ARGUMENT, "a recording of no streams");
    for (uint32_t i = 0; i < count && !status; i++) {
        Stream *of = stream(numbers[i]);
        if (!of) {
            status = BP_INVALID_ARGUMENT;
            break;
        }
        std::lock_guard stream_guard(of->lock);
        if (of->recording)
            status = fail(BP_BUSY, "stream %u is recording already", numbers[i]);
        else
            out->join(*of);
    }
    if (status) {
        out->leave();
        out.reset();
    }
    return status;
}

int32_t Scheduler::end(Recording &recording, std::unique_ptr<Graph> &out) {
    recording.leave();
    int32_t status = BP_OK;
    out = recording.build(status);
    if (!out || !options_.capture)
        return status;
    std::lock_guard guard(lock_);
    bp_queue_info info = {};
    info.head = {1, sizeof(info)};
    if (!recorder_ && api->queue->create(device, &info, &recorder_))
        recorder_ = 0;
    if (recorder_)
        capture(*out, recorder_);
    return BP_OK;
}

void Scheduler::stir_all() noexcept {
    uint32_t count = worker_count_.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; i++)
        workers_[i]->stir();
}

/* First all threads end, so that a batch handed over that waits for a cancelled one fails soon. */
void Scheduler::stop(uint64_t deadline_ns) noexcept {
    std::lock_guard guard(lock_);
    if (stopped_)
        return;
    stopped_ = true;
    for (uint32_t i = 0; i < stream_count_.load(std::memory_order_relaxed); i++) {
        std::lock_guard stream_guard(streams_[i]->lock);
        streams_[i]->stopped = true;
    }
    uint32_t count = worker_count_.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++)
        workers_[i]->end();
    watchers.stop();
    for (uint32_t i = 0; i < count; i++)
        workers_[i]->destroy(deadline_ns);
}

} // namespace bp::stream
