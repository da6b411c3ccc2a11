/*
 * Who goes next: the rule that the worker follows and `explore` enumerates.
 *
 * Among ready heads the highest priority goes first, then the one that came first; but a head that
 * was overtaken `ageing` times by batches that came after it goes before all priorities, the
 * oldest first. So nobody who is ready is overtaken more than `ageing` times: whoever goes by age
 * came before those that it passes, or is no overtaking.
 */
#ifndef BEDPLATE_STREAM_ORDER_HPP
#define BEDPLATE_STREAM_ORDER_HPP

#include <cstdint>

namespace bp::stream {

struct Rank {
    int32_t priority;
    uint32_t overtaken;
    uint64_t arrival;
};

/* Whether `a` goes before `b`. */
inline bool before(const Rank &a, const Rank &b, uint32_t ageing) noexcept {
    bool old_a = a.overtaken >= ageing, old_b = b.overtaken >= ageing;
    if (old_a != old_b)
        return old_a;
    if (!old_a && a.priority != b.priority)
        return a.priority > b.priority;
    return a.arrival < b.arrival;
}

} // namespace bp::stream

#endif
