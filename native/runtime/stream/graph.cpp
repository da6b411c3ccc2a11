/* Recording and graphs; see graph.hpp. */
#include "graph.hpp"

#include "failure.hpp"

namespace bp::stream {

void retain(Graph *graph) noexcept {
    graph->owners.fetch_add(1, std::memory_order_relaxed);
}

void release(Graph *graph) noexcept {
    if (graph->owners.fetch_sub(1, std::memory_order_acq_rel) != 1)
        return;
    if (graph->native)
        graph->api->capture->release(graph->device, graph->native);
    delete graph;
}

void Recording::join(Stream &stream) {
    streams_.push_back(&stream);
    stood_[stream.last.timeline] = stream.last.value;
    at_[stream.last.timeline] = stream.last.value;
    stream.recording = this;
}

void Recording::leave() noexcept {
    for (Stream *stream : streams_) {
        std::lock_guard guard(stream->lock);
        stream->recording = nullptr;
    }
}

int32_t Recording::spoil(int32_t status) noexcept {
    if (!status_) {
        status_ = status;
        try {
            text_ = said();
        } catch (...) {
            text_.clear();
        }
    }
    return status;
}

/* Whether a recorded batch moves the timeline there, and nobody did before. */
bool Recording::inside(const bp_fence &wait) {
    auto stood = stood_.find(wait.timeline);
    uint64_t value = 0;
    if (stood != stood_.end())
        value = stood->second;
    else if (api_->timeline->query(device_, wait.timeline, &value))
        return false;
    auto of = signals_.find(wait.timeline);
    if (wait.value <= value || of == signals_.end())
        return false;
    auto found = of->second.lower_bound(wait.value);
    if (found == of->second.end())
        return false;
    found->second.wanted = true;
    return true;
}

int32_t Recording::admit(const bp_batch &batch) {
    for (uint32_t i = 0; i < batch.wait_count; i++)
        if (!inside(batch.wait[i]))
            return fail(BP_INVALID_ARGUMENT,
                        "batch %llu of a recording waits for timeline %llu to reach %llu, which "
                        "no batch recorded before does; give the wait to the graph's launch",
                        static_cast<unsigned long long>(batch.tag),
                        static_cast<unsigned long long>(batch.wait[i].timeline),
                        static_cast<unsigned long long>(batch.wait[i].value));
    for (uint32_t i = 0; i < batch.signal_count; i++) {
        bool own = i + 1 == batch.signal_count;
        signals_[batch.signal[i].timeline][batch.signal[i].value] = {batch.tag, own};
    }
    return BP_OK;
}

int32_t Recording::add(Stream &stream, const bp_batch *given, uint64_t *value) {
    std::lock_guard guard(lock_);
    auto batch = std::make_unique<Batch>();
    int32_t status = batch->copy(given);
    if (status)
        return spoil(status);
    uint64_t timeline = stream.last.timeline;
    batch->set_own({timeline, at_[timeline] + 1});
    status = admit(batch->described);
    if (status)
        return spoil(status);
    *value = ++at_[timeline];
    batches_.push_back(std::move(batch));
    return BP_OK;
}

std::unique_ptr<Graph> Recording::build(int32_t &status) {
    std::lock_guard guard(lock_);
    status = status_ ? fail(status_, "the recording is no graph: %.400s", text_.c_str()) : BP_OK;
    for (const auto &[timeline, values] : signals_)
        for (const auto &[value, signal] : values)
            if (!signal.wanted && !status)
                status = fail(BP_INVALID_ARGUMENT,
                              "batch %llu of a recording moves timeline %llu to %llu, for which no "
                              "recorded batch waits, and which no second run could do; give the "
                              "signal to the graph's launch",
                              static_cast<unsigned long long>(signal.tag),
                              static_cast<unsigned long long>(timeline),
                              static_cast<unsigned long long>(value));
    if (status)
        return nullptr;
    auto graph = std::make_unique<Graph>();
    graph->api = api_;
    graph->device = device_;
    graph->batches = std::move(batches_);
    for (const auto &batch : graph->batches)
        graph->commands.insert(graph->commands.end(), batch->described.commands,
                               batch->described.commands + batch->described.command_count);
    return graph;
}

void capture(Graph &graph, uint64_t queue) noexcept {
    const bp_api *api = graph.api;
    if (api->capture->begin(graph.device, queue))
        return;
    int32_t status = BP_OK;
    bp_batch batch = {};
    batch.head = {1, sizeof(batch)};
    batch.commands = graph.commands.data();
    batch.command_count = static_cast<uint32_t>(graph.commands.size());
    if (batch.command_count)
        status = api->queue->submit(graph.device, queue, &batch);
    uint64_t native = 0;
    if (api->capture->end(graph.device, queue, &native))
        return;
    if (status)
        api->capture->release(graph.device, native);
    else
        graph.native = native;
}

} // namespace bp::stream
