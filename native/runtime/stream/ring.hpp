/*
 * A bounded ring between threads, without locks.
 *
 * Contract: any thread may push and pop. An item is seen by the one who pops it together with all
 * that was written before its push. Full and empty are answers, never waits. Each cell carries the
 * turn at which it may be written or read next, so a slow writer holds up only its own cell.
 * Source: the bounded queue with sequence numbers in cells is Dmitry Vyukov's idea (2010).
 */
#ifndef BEDPLATE_STREAM_RING_HPP
#define BEDPLATE_STREAM_RING_HPP

#include <atomic>
#include <cstdint>
#include <memory>

namespace bp::stream {

template <typename Item> class Ring {
  public:
    /* `capacity` is a power of two. Throws std::bad_alloc. */
    explicit Ring(uint32_t capacity) : cells_(new Cell[capacity]), mask_(capacity - 1) {
        for (uint32_t i = 0; i < capacity; i++)
            cells_[i].turn.store(i, std::memory_order_relaxed);
    }

    bool push(Item item) noexcept {
        uint64_t place = tail_.load(std::memory_order_relaxed);
        for (;;) {
            Cell &cell = cells_[place & mask_];
            uint64_t turn = cell.turn.load(std::memory_order_acquire);
            if (turn == place) {
                if (tail_.compare_exchange_weak(place, place + 1, std::memory_order_relaxed)) {
                    cell.item = item;
                    cell.turn.store(place + 1, std::memory_order_seq_cst);
                    return true;
                }
            } else if (turn < place) {
                return false;
            } else {
                place = tail_.load(std::memory_order_relaxed);
            }
        }
    }

    bool pop(Item &item) noexcept {
        uint64_t place = head_.load(std::memory_order_relaxed);
        for (;;) {
            Cell &cell = cells_[place & mask_];
            uint64_t turn = cell.turn.load(std::memory_order_acquire);
            if (turn == place + 1) {
                if (head_.compare_exchange_weak(place, place + 1, std::memory_order_relaxed)) {
                    item = cell.item;
                    cell.turn.store(place + mask_ + 1, std::memory_order_release);
                    return true;
                }
            } else if (turn < place + 1) {
                return false;
            } else {
                place = head_.load(std::memory_order_relaxed);
            }
        }
    }

    /* For the only popper: whether a pop would find something. Sequentially consistent with push,
     * for who goes to sleep when it would not. */
    bool some() const noexcept {
        uint64_t place = head_.load(std::memory_order_relaxed);
        return cells_[place & mask_].turn.load(std::memory_order_seq_cst) == place + 1;
    }

  private:
    struct Cell {
        std::atomic<uint64_t> turn;
        Item item;
    };

    std::unique_ptr<Cell[]> cells_;
    uint64_t mask_;
    // On lines of their own: pushers and poppers do not take them from each other.
    alignas(64) std::atomic<uint64_t> tail_{0};
    alignas(64) std::atomic<uint64_t> head_{0};
};

} // namespace bp::stream

#endif
