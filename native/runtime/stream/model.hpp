/*
 * The device of numbers that `explore` steps through: one state, its possible steps, the next.
 *
 * Contract: a state is a value; `key` is the same for states that behave the same from here on.
 * A host's wait is one step (WAIT), or a look and a sleep as two, so that a signal may come
 * between: WAIT_SEEN sleeps only if nothing changed since its look, WAIT_BLIND always.
 */
#ifndef BEDPLATE_STREAM_MODEL_HPP
#define BEDPLATE_STREAM_MODEL_HPP

#include <bedplate/streams.h>
#include <string>
#include <vector>

namespace bp::stream {

enum class Phase : uint8_t { before, looked, asleep };

struct Host {
    uint32_t next = 0; /* of its steps */
    Phase phase = Phase::before;
    uint32_t seen = 0; /* changes of the timeline at its look */
};

struct Row {
    std::vector<uint32_t> steps; /* submitted and not run */
    uint64_t overtaken = 0;      /* its head, since it was ready */
};

struct State {
    std::vector<Host> hosts;
    std::vector<Row> rows;
    std::vector<uint64_t> values;
    std::vector<uint32_t> changes;
    std::vector<uint32_t> order; /* lanes of batches not run, in the order of their submits */
    uint32_t verdict = BP_RUNTIME_EXPLORE_CLEAN;

    std::string key() const;
};

class Model {
  public:
    Model(const bp_runtime_program &program, bp_runtime_rule rule, void *rule_data);
    State first() const;
    /* Actors that can step: hosts, then queues. */
    void able(const State &state, std::vector<uint32_t> &out) const;
    void step(State &state, uint32_t actor) const;
    bool done(const State &state) const;
    /* What is wrong with a state in which nobody can step. */
    uint32_t stuck(const State &state) const;
    std::string say(const State &state, uint32_t actor) const;
    std::string say_stuck(const State &state) const;

  private:
    static constexpr uint32_t NONE = UINT32_MAX;

    const bp_runtime_step *step_of(const State &state, uint32_t host) const;
    const bp_fence *fences(const bp_runtime_step &step) const;
    bool reached(const State &state, const bp_fence &fence) const;
    bool passed(const State &state, uint32_t step) const;
    uint32_t chosen(const State &state, uint32_t queue) const;
    uint32_t ruled(const State &state, uint32_t queue) const;
    uint64_t arrival(const State &state, uint32_t lane) const;
    void run(State &state, uint32_t queue) const;
    void host(State &state, uint32_t number) const;
    void signal(State &state, const bp_fence &fence) const;

    const bp_runtime_program &program_;
    bp_runtime_rule rule_;
    void *rule_data_;
    std::vector<std::vector<uint32_t>> of_host_;
    std::vector<uint32_t> flags_; /* of queues */
};

} // namespace bp::stream

#endif
