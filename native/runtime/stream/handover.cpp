/* What the worker does with a batch in the end: to the device, or failed; see worker.hpp. */
#include "graph.hpp"
#include "worker.hpp"

#include <cstdio>

namespace bp::stream {

void Worker::hand(Batch *batch) noexcept {
    char text[TEXT_BYTES];
    // Counted first: whoever was woken by the batch finds it counted.
    handed_.fetch_add(1, std::memory_order_release);
    int32_t status = give(*batch, text);
    if (status) {
        handed_.fetch_sub(1, std::memory_order_relaxed);
        return fail_batch(batch, status, text);
    }
    last_handed_ = batch->own();
    if (window_) {
        flight_[(flight_first_ + flight_count_) % WINDOW] = last_handed_;
        flight_count_++;
    }
    finish(batch);
}

int32_t Worker::give(Batch &batch, char (&text)[TEXT_BYTES]) noexcept {
    const bp_api *api = ground_.api;
    char why[TEXT_BYTES];
    uint64_t value = 0;
    int32_t status = ground_.failures.find(batch.own(), why);
    if (!status) {
        status = api->timeline->query(ground_.device, batch.own().timeline, &value);
        if (status)
            ask(api, status, why);
    }
    if (status) {
        snprintf(text, sizeof(text), "its stream failed before: %.400s", why);
        return status;
    }
    bp_batch described = batch.described;
    // Those that a look found passed need no second wait.
    if (!(flags_ & BP_RUNTIME_QUEUE_DEVICE_WAITS) || batch.deadline_ns != BP_RUNTIME_NEVER)
        described.wait_count = 0;
    if (batch.graph && batch.graph->native) {
        status = api->capture->launch(ground_.device, queue_, batch.graph->native, &described);
    } else {
        if (batch.graph) {
            described.commands = batch.graph->commands.data();
            described.command_count = static_cast<uint32_t>(batch.graph->commands.size());
        }
        status = api->queue->submit(ground_.device, queue_, &described);
    }
    if (status)
        ask(api, status, text);
    return status;
}

void Worker::fail_batch(Batch *batch, int32_t status, const char *text) noexcept {
    char sentence[TEXT_BYTES];
    snprintf(sentence, sizeof(sentence), "batch %llu: %.440s",
             static_cast<unsigned long long>(batch->described.tag), text);
    // First here: whoever is woken by the HAL then finds the sentence.
    failed_.fetch_add(1, std::memory_order_release);
    for (uint32_t i = 0; i < batch->described.signal_count; i++)
        ground_.failures.add(batch->described.signal[i], status, sentence);
    poison(*batch);
    unpark(*batch);
    finish(batch);
    ground_.stir_all();
}

/* Each signal by a batch of its own: one that names a timeline that is gone spoils no other. */
void Worker::poison(const Batch &batch) noexcept {
    const bp_api *api = ground_.api;
    uint64_t never = 0;
    if (api->timeline->create(ground_.device, 0, &never))
        return; // The device is lost, or has no memory: Failures knows.
    bp_fence wait = {never, 1};
    for (uint32_t i = 0; i < batch.described.signal_count; i++) {
        bp_batch empty = {};
        empty.head = {1, sizeof(empty)};
        empty.tag = batch.described.tag;
        empty.wait = &wait;
        empty.wait_count = 1;
        empty.signal = &batch.described.signal[i];
        empty.signal_count = 1;
        api->queue->submit(ground_.device, queue_, &empty);
    }
    api->timeline->destroy(ground_.device, never);
}

void Worker::finish(Batch *batch) noexcept {
    batch->stream->handed.fetch_add(1, std::memory_order_release);
    give_back(batch);
}

void Worker::cancel_all() noexcept {
    for (Stream *stream = active_; stream; stream = stream->next_active)
        while (stream->head)
            fail_batch(behead(*stream), BP_CANCELLED, "the scheduler stopped before it could run");
    if (flight_watch_)
        flight_watch_->unwanted.store(true, std::memory_order_relaxed);
}

void Worker::end() noexcept {
    if (!thread_.joinable())
        return;
    refuse();
    ending_.store(true, std::memory_order_release);
    park_.post();
    thread_.join();
}

void Worker::destroy(uint64_t deadline_ns) noexcept {
    if (destroyed_)
        return;
    destroyed_ = true;
    const bp_api *api = ground_.api;
    if (last_handed_.timeline && deadline_ns)
        api->timeline->wait_host(ground_.device, last_handed_.timeline, last_handed_.value,
                                 deadline_ns);
    api->queue->destroy(ground_.device, queue_);
}

} // namespace bp::stream
