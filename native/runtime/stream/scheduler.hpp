/*
 * Queues and streams of a device by number, and the calls that submitters make.
 *
 * Contract: streams and queues live as long as the scheduler, so a number that was given out stays
 * right, and submitting takes no lock but the stream's own.
 */
#ifndef BEDPLATE_STREAM_SCHEDULER_HPP
#define BEDPLATE_STREAM_SCHEDULER_HPP

#include "graph.hpp"
#include "worker.hpp"

#include <array>

namespace bp::stream {

class Scheduler final : public Ground {
  public:
    static constexpr uint32_t MOST_QUEUES = 64;
    static constexpr uint32_t MOST_STREAMS = 4096;

    Scheduler(const bp_api *api, uint64_t device, const bp_runtime_scheduler_options &options);
    ~Scheduler();

    int32_t add_queue(int32_t priority, uint32_t window, uint32_t flags, uint32_t *out);
    int32_t add_stream(uint32_t queue, int32_t priority, bp_fence at, uint32_t *out);
    int32_t reset(uint32_t stream, bp_fence at);
    int32_t submit(uint32_t stream, const bp_batch *given, Graph *graph, uint64_t wait_by,
                   uint64_t room_by, uint64_t *value);
    int32_t handed(uint32_t stream, uint64_t *count);
    int32_t wait(const bp_fence &fence, uint64_t deadline_ns);
    int32_t signal(const bp_fence &fence);
    int32_t stats(uint32_t queue, bp_runtime_queue_stats *out);
    int32_t begin(const uint32_t *streams, uint32_t count, std::unique_ptr<Recording> &out);
    int32_t end(Recording &recording, std::unique_ptr<Graph> &out);
    void stop(uint64_t deadline_ns) noexcept;
    void stir_all() noexcept override;

  private:
    Stream *stream(uint32_t number) noexcept;
    Worker *worker(uint32_t number) noexcept;
    int32_t place(Stream &stream, Batch *batch, bool *recording, uint64_t *value) noexcept;

    bp_runtime_scheduler_options options_;
    std::mutex lock_; /* making things, recording, stopping */
    std::array<std::unique_ptr<Worker>, MOST_QUEUES> workers_;
    std::array<std::unique_ptr<Stream>, MOST_STREAMS> streams_;
    std::atomic<uint32_t> worker_count_{0}, stream_count_{0};
    uint64_t recorder_ = 0; /* a HAL queue that only records */
    bool stopped_ = false;
};

} // namespace bp::stream

#endif
