/*
 * Where threads sleep until something was posted: a word that counts posts, and a futex on it.
 *
 * Contract: take `look()` before looking at what one waits for, then `rest(seen)`: a post between
 * the two is never lost, because the word has changed. A post costs a system call only when
 * somebody has gone to sleep since the last one that did. `nudge` is for posters who have changed,
 * by a sequentially consistent store, what the sleeper's `ready` reads by such a load: while
 * nobody sleeps it writes nothing. Linux only, as the HAL.
 */
#ifndef BEDPLATE_STREAM_PARK_HPP
#define BEDPLATE_STREAM_PARK_HPP

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace bp::stream {

inline uint64_t now_ns() noexcept {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

inline void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

class alignas(64) Park {
  public:
    uint32_t look() const noexcept {
        return word_.load(std::memory_order_acquire);
    }

    void post() noexcept {
        word_.fetch_add(1, std::memory_order_seq_cst);
        wake();
    }

    void nudge() noexcept {
        if (sleeping_.load(std::memory_order_seq_cst))
            post();
    }

    /* Until a post after `seen`, the deadline, at once when ready, or for no reason. */
    template <typename Ready> void rest(uint32_t seen, uint64_t deadline_ns, Ready ready) noexcept {
        timespec until = {static_cast<time_t>(deadline_ns / 1000000000u),
                          static_cast<long>(deadline_ns % 1000000000u)};
        // The kernel's time is signed; the far future is never.
        timespec *limit = deadline_ns >= static_cast<uint64_t>(INT64_MAX) ? nullptr : &until;
        // Sequential consistency of this store and the looks behind it, and of a poster's writes
        // and its look at this: one of the two sees the other.
        sleeping_.store(1, std::memory_order_seq_cst);
        if (!ready() && word_.load(std::memory_order_seq_cst) == seen)
            syscall(SYS_futex, &word_, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen, limit, nullptr,
                    FUTEX_BITSET_MATCH_ANY);
    }

  private:
    void wake() noexcept {
        // One poster wakes all; those behind it find nobody asleep.
        if (sleeping_.load(std::memory_order_seq_cst) &&
            sleeping_.exchange(0, std::memory_order_seq_cst))
            syscall(SYS_futex, &word_, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, nullptr, nullptr,
                    0);
    }

    std::atomic<uint32_t> word_{0};
    std::atomic<uint32_t> sleeping_{0};
};

} // namespace bp::stream

#endif
