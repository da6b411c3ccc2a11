/*
 * Recorded work that is run as one, any number of times.
 *
 * A recording takes batches of some streams in the order of their submits, which is an order that
 * their fences allow: a wait is for what was recorded before, or it is refused. So a graph is
 * their commands in that order, without fences, and does not change any more. It runs as the
 * device's own graph where the device could record it, and as one batch elsewhere.
 */
#ifndef BEDPLATE_STREAM_GRAPH_HPP
#define BEDPLATE_STREAM_GRAPH_HPP

#include "batch.hpp"
#include "stream.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace bp::stream {

struct Graph {
    std::atomic<uint32_t> owners{1};
    const bp_api *api = nullptr;
    uint64_t device = 0;
    uint64_t native = 0; /* the device's graph, or 0 */
    std::vector<std::unique_ptr<Batch>> batches;
    std::vector<const bp_command *> commands;
};

void retain(Graph *graph) noexcept;
void release(Graph *graph) noexcept;

class Recording {
  public:
    Recording(const bp_api *api, uint64_t device) : api_(api), device_(device) {}
    /* Throws std::bad_alloc; the recording is then no graph. */
    void join(Stream &stream);
    /* Under the stream's lock. The value as submit gives it. */
    int32_t add(Stream &stream, const bp_batch *given, uint64_t *value);
    /* Lets the streams go; after it nobody adds. */
    void leave() noexcept;
    /* A graph that replays by submitting, or null with a status and a sentence. */
    std::unique_ptr<Graph> build(int32_t &status);

  private:
    struct Signal {
        uint64_t tag;
        bool wanted; /* somebody waits, or it is a stream's own */
    };

    int32_t admit(const bp_batch &batch);
    bool inside(const bp_fence &wait);
    int32_t spoil(int32_t status) noexcept;

    const bp_api *api_;
    const uint64_t device_;
    std::mutex lock_;
    std::vector<Stream *> streams_;
    std::map<uint64_t, uint64_t> stood_; /* streams' timelines, and where they stood */
    std::map<uint64_t, uint64_t> at_;    /* and where the recording has moved them */
    std::map<uint64_t, std::map<uint64_t, Signal>> signals_;
    std::vector<std::unique_ptr<Batch>> batches_;
    int32_t status_ = BP_OK;
    std::string text_;
};

/* Has the device record it on a queue that runs nothing else; without effect where it cannot. */
void capture(Graph &graph, uint64_t queue) noexcept;

} // namespace bp::stream

#endif
