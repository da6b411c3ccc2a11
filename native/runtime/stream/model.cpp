/* See model.hpp. */
#include "model.hpp"

#include "order.hpp"

#include <algorithm>

namespace bp::stream {

namespace {

void put(std::string &key, uint64_t value) {
    key.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

std::string number(uint64_t value) {
    return std::to_string(value);
}

} // namespace

std::string State::key() const {
    std::string key;
    for (const Host &host : hosts) {
        put(key, host.next);
        put(key, static_cast<uint64_t>(host.phase));
        put(key, host.phase == Phase::looked ? host.seen : 0);
    }
    for (const Row &row : rows)
        put(key, row.overtaken);
    for (uint64_t value : values)
        put(key, value);
    // Beside what a host has seen of them.
    for (uint32_t change : changes)
        put(key, change);
    for (uint32_t lane : order)
        put(key, lane);
    for (const Row &row : rows) {
        put(key, row.steps.size());
        for (uint32_t step : row.steps)
            put(key, step);
    }
    return key;
}

Model::Model(const bp_runtime_program &program, bp_runtime_rule rule, void *rule_data)
    : program_(program), rule_(rule), rule_data_(rule_data), of_host_(program.host_count),
      flags_(program.queue_count) {
    for (uint32_t i = 0; i < program.step_count; i++)
        of_host_[program.steps[i].host].push_back(i);
    for (uint32_t i = 0; i < program.lane_count; i++)
        flags_[program.lanes[i].queue] |= program.lanes[i].flags;
}

State Model::first() const {
    State state;
    state.hosts.resize(program_.host_count);
    state.rows.resize(program_.lane_count);
    state.values.resize(program_.timeline_count);
    state.changes.resize(program_.timeline_count);
    return state;
}

const bp_runtime_step *Model::step_of(const State &state, uint32_t host) const {
    const auto &steps = of_host_[host];
    uint32_t next = state.hosts[host].next;
    return next < steps.size() ? &program_.steps[steps[next]] : nullptr;
}

const bp_fence *Model::fences(const bp_runtime_step &step) const {
    return program_.fences + step.first_fence;
}

bool Model::reached(const State &state, const bp_fence &fence) const {
    return state.values[fence.timeline] >= fence.value;
}

bool Model::passed(const State &state, uint32_t number) const {
    const bp_runtime_step &step = program_.steps[number];
    const bp_fence *waits = fences(step);
    return std::all_of(waits, waits + step.wait_count,
                       [&](const bp_fence &wait) { return reached(state, wait); });
}

/* Where a lane's head stands in the order of submits. */
uint64_t Model::arrival(const State &state, uint32_t lane) const {
    return static_cast<uint64_t>(std::find(state.order.begin(), state.order.end(), lane) -
                                 state.order.begin());
}

/* The lane that a rule of somebody else's chooses, or NONE. */
uint32_t Model::ruled(const State &state, uint32_t queue) const {
    std::vector<bp_runtime_ready> ready;
    for (uint32_t lane = 0; lane < program_.lane_count; lane++) {
        const Row &row = state.rows[lane];
        if (program_.lanes[lane].queue == queue && !row.steps.empty() &&
            passed(state, row.steps.front()))
            ready.push_back({arrival(state, lane), program_.steps[row.steps.front()].tag, lane,
                             static_cast<uint32_t>(row.overtaken), program_.lanes[lane].priority,
                             0});
    }
    if (ready.empty())
        return NONE;
    uint32_t count = static_cast<uint32_t>(ready.size());
    uint32_t choice = rule_(rule_data_, ready.data(), count, program_.ageing);
    return choice < count ? ready[choice].lane : NONE;
}

/* The lane whose head the queue runs next, or NONE. */
uint32_t Model::chosen(const State &state, uint32_t queue) const {
    if (rule_ && !(flags_[queue] & BP_RUNTIME_QUEUE_DEVICE_WAITS))
        return ruled(state, queue);
    uint32_t best = NONE;
    Rank best_rank = {};
    for (uint32_t lane = 0; lane < program_.lane_count; lane++) {
        const Row &row = state.rows[lane];
        if (program_.lanes[lane].queue != queue || row.steps.empty())
            continue;
        bool by_device = flags_[queue] & BP_RUNTIME_QUEUE_DEVICE_WAITS;
        if (!by_device && !passed(state, row.steps.front()))
            continue;
        Rank rank = {by_device ? 0 : program_.lanes[lane].priority,
                     by_device ? 0 : static_cast<uint32_t>(row.overtaken), arrival(state, lane)};
        if (best == NONE || before(rank, best_rank, program_.ageing)) {
            best = lane;
            best_rank = rank;
        }
    }
    // Handed over in order, a batch that waits on the device holds up those behind it.
    if (best != NONE && !passed(state, state.rows[best].steps.front()))
        return NONE;
    return best;
}

void Model::able(const State &state, std::vector<uint32_t> &out) const {
    out.clear();
    for (uint32_t i = 0; i < program_.host_count; i++) {
        const bp_runtime_step *step = step_of(state, i);
        if (!step || state.hosts[i].phase == Phase::asleep)
            continue;
        if (step->kind != BP_RUNTIME_STEP_WAIT || reached(state, *fences(*step)))
            out.push_back(i);
    }
    for (uint32_t i = 0; i < program_.queue_count; i++)
        if (chosen(state, i) != NONE)
            out.push_back(program_.host_count + i);
}

void Model::signal(State &state, const bp_fence &fence) const {
    uint64_t &value = state.values[fence.timeline];
    if (fence.value <= value)
        state.verdict = BP_RUNTIME_EXPLORE_SHRINK;
    value = fence.value;
    state.changes[fence.timeline]++;
    for (uint32_t i = 0; i < program_.host_count; i++) {
        Host &host = state.hosts[i];
        if (host.phase == Phase::asleep && fences(*step_of(state, i))->timeline == fence.timeline)
            host.phase = Phase::before;
    }
}

void Model::run(State &state, uint32_t queue) const {
    uint32_t lane = chosen(state, queue);
    uint64_t came = arrival(state, lane);
    uint64_t allowed = program_.allowed ? program_.allowed : program_.ageing;
    for (uint32_t other = 0; other < program_.lane_count; other++) {
        Row &row = state.rows[other];
        if (other == lane || program_.lanes[other].queue != queue || row.steps.empty() ||
            arrival(state, other) >= came || !passed(state, row.steps.front()))
            continue;
        if (++row.overtaken > allowed)
            state.verdict = BP_RUNTIME_EXPLORE_OVERTAKE;
    }
    Row &row = state.rows[lane];
    const bp_runtime_step &step = program_.steps[row.steps.front()];
    row.steps.erase(row.steps.begin());
    row.overtaken = 0;
    state.order.erase(state.order.begin() + static_cast<ptrdiff_t>(came));
    for (uint32_t i = 0; i < step.signal_count; i++)
        signal(state, fences(step)[step.wait_count + i]);
}

void Model::host(State &state, uint32_t number) const {
    Host &host = state.hosts[number];
    const bp_runtime_step &step = *step_of(state, number);
    const bp_fence &fence = *fences(step);
    switch (step.kind) {
    case BP_RUNTIME_STEP_SUBMIT:
        state.rows[step.lane].steps.push_back(of_host_[number][host.next]);
        state.order.push_back(step.lane);
        host.next++;
        break;
    case BP_RUNTIME_STEP_SIGNAL:
        signal(state, fence);
        host.next++;
        break;
    case BP_RUNTIME_STEP_WAIT:
        host.next++;
        break;
    default:
        if (host.phase == Phase::looked) {
            bool changed = state.changes[fence.timeline] != host.seen;
            bool again = step.kind == BP_RUNTIME_STEP_WAIT_SEEN && changed;
            host.phase = again ? Phase::before : Phase::asleep;
        } else if (reached(state, fence)) {
            host.next++;
        } else {
            host.phase = Phase::looked;
            host.seen = state.changes[fence.timeline];
        }
    }
}

void Model::step(State &state, uint32_t actor) const {
    if (actor < program_.host_count)
        host(state, actor);
    else
        run(state, actor - program_.host_count);
}

bool Model::done(const State &state) const {
    for (uint32_t i = 0; i < program_.host_count; i++)
        if (step_of(state, i))
            return false;
    return state.order.empty();
}

uint32_t Model::stuck(const State &state) const {
    if (done(state))
        return BP_RUNTIME_EXPLORE_CLEAN;
    for (uint32_t i = 0; i < program_.host_count; i++)
        if (state.hosts[i].phase == Phase::asleep && reached(state, *fences(*step_of(state, i))))
            return BP_RUNTIME_EXPLORE_LOST;
    return BP_RUNTIME_EXPLORE_DEADLOCK;
}

/* What an actor is about to do. */
std::string Model::say(const State &state, uint32_t actor) const {
    if (actor >= program_.host_count) {
        uint32_t queue = actor - program_.host_count, lane = chosen(state, queue);
        const bp_runtime_step &step = program_.steps[state.rows[lane].steps.front()];
        return "queue " + number(queue) + " runs batch " + number(step.tag) + " of stream " +
               number(lane);
    }
    const bp_runtime_step &step = *step_of(state, actor);
    const bp_fence &fence = *fences(step);
    std::string what = "host " + number(actor);
    std::string place = "timeline " + number(fence.timeline);
    bool looked = state.hosts[actor].phase == Phase::looked;
    if (step.kind == BP_RUNTIME_STEP_SUBMIT)
        return what + " submits batch " + number(step.tag) + " to stream " + number(step.lane);
    if (step.kind == BP_RUNTIME_STEP_SIGNAL)
        return what + " moves " + place + " to " + number(fence.value);
    if (looked && step.kind == BP_RUNTIME_STEP_WAIT_SEEN &&
        state.changes[fence.timeline] != state.hosts[actor].seen)
        return what + " does not sleep: " + place + " changed";
    if (looked)
        return what + " goes to sleep for " + place;
    return what + " looks at " + place + ": at " + number(state.values[fence.timeline]) +
           ", wants " + number(fence.value);
}

std::string Model::say_stuck(const State &state) const {
    std::string text;
    auto fence_of = [&](const bp_fence &fence) {
        return "timeline " + number(fence.timeline) + " to reach " + number(fence.value) +
               ", which is at " + number(state.values[fence.timeline]) + "\n";
    };
    for (uint32_t i = 0; i < program_.host_count; i++)
        if (const bp_runtime_step *step = step_of(state, i))
            text += "stuck: host " + number(i) +
                    (state.hosts[i].phase == Phase::asleep ? " sleeps for " : " waits for ") +
                    fence_of(*fences(*step));
    for (uint32_t lane = 0; lane < program_.lane_count; lane++) {
        if (state.rows[lane].steps.empty())
            continue;
        const bp_runtime_step &step = program_.steps[state.rows[lane].steps.front()];
        std::string head = "stuck: batch " + number(step.tag) + " of stream " + number(lane);
        const bp_fence *wait = fences(step);
        while (wait < fences(step) + step.wait_count && reached(state, *wait))
            wait++;
        text += wait == fences(step) + step.wait_count ? head + " is behind another on its queue\n"
                                                       : head + " waits for " + fence_of(*wait);
    }
    return text;
}

} // namespace bp::stream
