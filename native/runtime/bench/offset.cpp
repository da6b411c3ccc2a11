/*
 * OffsetAllocator's method, behind the entries that `pairs` calls: what the allocator is measured
 * beside.
 *
 * Written from its public description: 256 bins, a bin's number being a float of 5 bits of
 * exponent and 3 of mantissa; two levels of bitmap; nodes in an array, each linked to its
 * neighbours by offset and to the other free ones of its bin; vacant nodes on a stack. A request
 * takes the first node of the first bin whose least size is enough, so the search never looks at
 * a second one. Like the original it knows nothing of threads, streams, stale handles or figures.
 * Offsets count units of 512 bytes, so that 32 bits reach as far as ours.
 *
 * Source: Sebastian Aaltonen, OffsetAllocator, 2023.
 */
#include <bedplate/runtime.h>

#include <bit>
#include <new>
#include <vector>

namespace {

constexpr uint32_t MANTISSA = 3, PER_ROW = 1u << MANTISSA, ROWS = 32, BINS = ROWS * PER_ROW;
constexpr uint32_t NIL = UINT32_MAX;
constexpr uint32_t UNIT_SHIFT = 9;
constexpr uint32_t NODES = 128 << 10;

/* The number of the bin whose least size is at or below `size`; what was cut off goes to `rest`. */
uint32_t bin_below(uint32_t size, uint32_t *rest) {
    if (size < PER_ROW) {
        *rest = 0;
        return size;
    }
    uint32_t shift = static_cast<uint32_t>(std::bit_width(size)) - 1 - MANTISSA;
    *rest = size & ((1u << shift) - 1);
    return ((shift + 1) << MANTISSA) | ((size >> shift) & (PER_ROW - 1));
}

struct Node {
    uint32_t offset, size;
    uint32_t bin_before, bin_after;
    uint32_t below, above;
    bool used;
};

} // namespace

struct bp_runtime {
    uint32_t rows = 0;
    uint8_t columns[ROWS] = {};
    uint32_t heads[BINS];
    std::vector<Node> nodes;
    std::vector<uint32_t> vacant;

    explicit bp_runtime(uint32_t units) : nodes(NODES) {
        for (uint32_t &head : heads)
            head = NIL;
        vacant.reserve(NODES);
        for (uint32_t index = NODES; index-- > 0;)
            vacant.push_back(index);
        insert(0, units, NIL, NIL);
    }

    /* A free node in its bin. */
    uint32_t insert(uint32_t offset, uint32_t size, uint32_t below, uint32_t above) {
        uint32_t rest, bin = bin_below(size, &rest), index = vacant.back(), head = heads[bin];
        vacant.pop_back();
        nodes[index] = {offset, size, NIL, head, below, above, false};
        if (head == NIL) {
            columns[bin >> MANTISSA] |= static_cast<uint8_t>(1u << (bin & (PER_ROW - 1)));
            rows |= 1u << (bin >> MANTISSA);
        } else {
            nodes[head].bin_before = index;
        }
        heads[bin] = index;
        return index;
    }

    void unlink(uint32_t index) {
        const Node &node = nodes[index];
        if (node.bin_after != NIL)
            nodes[node.bin_after].bin_before = node.bin_before;
        if (node.bin_before != NIL) {
            nodes[node.bin_before].bin_after = node.bin_after;
            return;
        }
        uint32_t rest;
        pop(bin_below(node.size, &rest), node.bin_after);
    }

    /* `next` is the first of a bin from now on. */
    void pop(uint32_t bin, uint32_t next) {
        heads[bin] = next;
        if (next != NIL)
            return;
        uint8_t &row = columns[bin >> MANTISSA];
        row = static_cast<uint8_t>(row & ~(1u << (bin & (PER_ROW - 1))));
        if (!row)
            rows &= ~(1u << (bin >> MANTISSA));
    }

    uint32_t allocate(uint32_t size) {
        uint32_t rest, least = bin_below(size, &rest);
        least += rest > 0;
        uint32_t row = least >> MANTISSA;
        uint32_t leaf = row < ROWS ? columns[row] & (0xffu << (least & (PER_ROW - 1))) : 0;
        if (!leaf) {
            uint32_t above = row + 1 < ROWS ? rows & (UINT32_MAX << (row + 1)) : 0;
            if (!above)
                return NIL;
            row = static_cast<uint32_t>(std::countr_zero(above));
            leaf = columns[row];
        }
        uint32_t bin = row << MANTISSA | static_cast<uint32_t>(std::countr_zero(leaf));
        uint32_t index = heads[bin];
        uint32_t left = nodes[index].size - size;
        if (left && vacant.empty())
            return NIL;
        pop(bin, nodes[index].bin_after);
        if (nodes[index].bin_after != NIL)
            nodes[nodes[index].bin_after].bin_before = NIL;
        nodes[index].used = true;
        if (left) {
            uint32_t above = nodes[index].above;
            uint32_t remainder = insert(nodes[index].offset + size, left, index, above);
            nodes[index].size = size;
            nodes[index].above = remainder;
            if (above != NIL)
                nodes[above].below = remainder;
        }
        return index;
    }

    void release(uint32_t index) {
        Node whole = nodes[index];
        if (whole.below != NIL && !nodes[whole.below].used) {
            uint32_t gone = whole.below;
            unlink(gone);
            whole.offset = nodes[gone].offset;
            whole.size += nodes[gone].size;
            whole.below = nodes[gone].below;
            vacant.push_back(gone);
        }
        if (whole.above != NIL && !nodes[whole.above].used) {
            uint32_t gone = whole.above;
            unlink(gone);
            whole.size += nodes[gone].size;
            whole.above = nodes[gone].above;
            vacant.push_back(gone);
        }
        vacant.push_back(index);
        uint32_t made = insert(whole.offset, whole.size, whole.below, whole.above);
        if (whole.below != NIL)
            nodes[whole.below].above = made;
        if (whole.above != NIL)
            nodes[whole.above].below = made;
    }
};

#define ENTRY extern "C" __attribute__((visibility("default")))

ENTRY int32_t bp_runtime_open_fake(uint64_t capacity, uint64_t, const char *, uint64_t,
                                   bp_runtime **out) {
    *out = new (std::nothrow) bp_runtime(static_cast<uint32_t>(capacity >> UNIT_SHIFT));
    return *out ? 0 : BP_RUNTIME_HOST_MEMORY;
}

ENTRY int32_t bp_runtime_close(bp_runtime *runtime) {
    delete runtime;
    return 0;
}

ENTRY int32_t bp_runtime_stream_open(bp_runtime *, uint64_t, uint64_t, uint32_t *out) {
    *out = 0;
    return 0;
}

ENTRY int32_t bp_runtime_allocate(bp_runtime *runtime, uint32_t, uint64_t bytes, uint32_t,
                                  bp_runtime_block *out) {
    uint64_t units = (bytes + (1u << UNIT_SHIFT) - 1) >> UNIT_SHIFT;
    uint32_t index = runtime->allocate(static_cast<uint32_t>(units));
    if (index == NIL)
        return BP_RUNTIME_OUT_OF_MEMORY;
    uint64_t address = static_cast<uint64_t>(runtime->nodes[index].offset) << UNIT_SHIFT;
    *out = {index + UINT64_C(1), address, units << UNIT_SHIFT, 0, 0};
    return 0;
}

ENTRY int32_t bp_runtime_free(bp_runtime *runtime, uint64_t block) {
    runtime->release(static_cast<uint32_t>(block - 1));
    return 0;
}
