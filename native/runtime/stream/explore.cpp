/* The search; see explore.hpp. */
#include "explore.hpp"

#include "failure.hpp"
#include "model.hpp"

#include <algorithm>
#include <random>
#include <unordered_map>

namespace bp::stream {

namespace {

constexpr const char *VERDICTS[] = {"no order goes wrong", "deadlock", "lost wake-up",
                                    "a signal does not grow its timeline", "overtaken too often"};

int32_t check(const bp_runtime_program &program) {
    if (!program.ageing)
        return fail(BP_INVALID_ARGUMENT, "the program's ageing is 0");
    for (uint32_t i = 0; i < program.lane_count; i++)
        if (program.lanes[i].queue >= program.queue_count)
            return fail(BP_INVALID_ARGUMENT, "stream %u is on queue %u of %u", i,
                        program.lanes[i].queue, program.queue_count);
    for (uint32_t i = 0; i < program.fence_count; i++)
        if (program.fences[i].timeline >= program.timeline_count)
            return fail(BP_INVALID_ARGUMENT, "fence %u is of timeline %llu of %u", i,
                        static_cast<unsigned long long>(program.fences[i].timeline),
                        program.timeline_count);
    for (uint32_t i = 0; i < program.step_count; i++) {
        const bp_runtime_step &step = program.steps[i];
        uint64_t fences = uint64_t{step.wait_count} + step.signal_count;
        bool submit = step.kind == BP_RUNTIME_STEP_SUBMIT;
        bool signal = step.kind == BP_RUNTIME_STEP_SIGNAL;
        if (step.kind < BP_RUNTIME_STEP_SUBMIT || step.kind > BP_RUNTIME_STEP_WAIT_BLIND ||
            step.host >= program.host_count || (submit && step.lane >= program.lane_count) ||
            step.first_fence + fences > program.fence_count ||
            (!submit && (step.signal_count != (signal ? 1u : 0u) || fences != 1)))
            return fail(BP_INVALID_ARGUMENT,
                        "step %u: kind %u, host %u, stream %u, %u waits, %u signals", i, step.kind,
                        step.host, step.lane, step.wait_count, step.signal_count);
    }
    return BP_OK;
}

class Search {
  public:
    Search(const bp_runtime_program &program, const bp_runtime_explore_options &options,
           bp_runtime_explored &out)
        : model_(program, options.rule, options.rule_data), options_(options), out_(out),
          random_(options.seed), bound_(options.depth ? options.depth : UINT32_MAX),
          states_(options.states ? options.states : 1'000'000) {
        out_ = {};
        out_.complete = options.walks == 0;
    }

    std::string run() {
        State first = model_.first();
        for (uint64_t i = 0; i < options_.walks && out_.states < states_; i++) {
            walk(first);
        }
        if (!options_.walks)
            dig(first);
        out_.steps = static_cast<uint32_t>(best_.size());
        return tell(first);
    }

  private:
    /* Whether the schedule ends here; keeps it when it is the shortest that goes wrong. */
    bool ends(const State &state, const std::vector<uint32_t> &able) {
        uint32_t verdict = state.verdict;
        if (!verdict && able.empty())
            verdict = model_.stuck(state);
        if (verdict && (!out_.verdict || path_.size() < best_.size())) {
            out_.verdict = verdict;
            best_ = path_;
            bound_ = static_cast<uint32_t>(path_.size());
        }
        bool over = verdict || able.empty();
        out_.schedules += over;
        return over;
    }

    void shuffle(std::vector<uint32_t> &able) {
        // By hand: std::shuffle may differ between libraries, and a seed must not.
        for (size_t i = able.size(); i > 1; i--)
            std::swap(able[i - 1], able[random_() % i]);
    }

    /* A frame of the search: a state whose steps are tried one after the other. */
    struct Frame {
        State state;
        std::vector<uint32_t> able;
        size_t next;
    };

    void dig(const State &first) {
        std::vector<Frame> frames;
        enter(frames, first);
        while (!frames.empty()) {
            Frame &frame = frames.back();
            if (frame.next == frame.able.size()) {
                frames.pop_back();
                if (!path_.empty())
                    path_.pop_back();
                continue;
            }
            uint32_t actor = frame.able[frame.next++];
            State next = frame.state;
            model_.step(next, actor);
            path_.push_back(actor);
            if (!enter(frames, next))
                path_.pop_back();
        }
    }

    bool enter(std::vector<Frame> &frames, const State &state) {
        std::vector<uint32_t> able;
        auto depth = static_cast<uint32_t>(path_.size());
        if (out_.states == states_) {
            out_.complete = 0;
            return false;
        }
        auto [place, fresh] = reached_.try_emplace(state.key(), depth);
        if (!fresh && place->second <= depth && !state.verdict)
            return false;
        place->second = depth;
        out_.states += fresh;
        model_.able(state, able);
        if (ends(state, able))
            return false;
        if (depth >= bound_) {
            // Longer than what was found needs no look; longer than the bound was not looked at.
            if (!out_.verdict)
                out_.complete = 0;
            return false;
        }
        shuffle(able);
        frames.push_back({state, std::move(able), 0});
        return true;
    }

    void walk(State state) {
        std::vector<uint32_t> able;
        path_.clear();
        for (;;) {
            model_.able(state, able);
            out_.states++;
            if (ends(state, able) || path_.size() >= bound_)
                return;
            uint32_t actor = able[random_() % able.size()];
            model_.step(state, actor);
            path_.push_back(actor);
        }
    }

    std::string tell(State state) const {
        std::string text = VERDICTS[out_.verdict];
        if (!out_.verdict)
            return text + (out_.complete ? "\n" : ", of those looked at\n");
        text += " after " + std::to_string(best_.size()) + " steps\n";
        for (size_t i = 0; i < best_.size(); i++) {
            text += std::to_string(i + 1) + " " + model_.say(state, best_[i]) + "\n";
            model_.step(state, best_[i]);
        }
        bool held =
            out_.verdict == BP_RUNTIME_EXPLORE_DEADLOCK || out_.verdict == BP_RUNTIME_EXPLORE_LOST;
        return held ? text + model_.say_stuck(state) : text;
    }

    Model model_;
    const bp_runtime_explore_options &options_;
    bp_runtime_explored &out_;
    std::mt19937_64 random_;
    uint32_t bound_;
    uint64_t states_;
    std::vector<uint32_t> path_, best_;
    std::unordered_map<std::string, uint32_t> reached_;
};

} // namespace

int32_t explore(const bp_runtime_program &program, const bp_runtime_explore_options &options,
                bp_runtime_explored &out, std::string &told) {
    int32_t status = check(program);
    if (status)
        return status;
    told = Search(program, options, out).run();
    return BP_OK;
}

} // namespace bp::stream
