/*
 * The cpu's memory: host memory that the device addresses directly.
 *
 * Large memory is mapped and asks for huge pages: weights are read end to end, and a page walk per
 * 4 KiB costs more than the rounding. Small memory comes from the heap, so ASan sees its ends.
 */
#define _GNU_SOURCE
#include "memory.h"

#include "device.h"
#include "windows.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAPPED_FROM   (1ull << 20)
#define HUGE_PAGE     (2ull << 20)
#define JUNK_NEW      0xA5
#define JUNK_RELEASED 0xDD
#ifndef BP_MEMORY_ALIGNMENT
#define BP_MEMORY_ALIGNMENT 64
#endif
#define ROUND_UP(x, to) (((x) + (to) - 1) / (to) * (to))

/* Storage of memory->bytes, or null. */
static unsigned char *storage(bp_cpu_memory *own) {
    const bp_memory *memory = &own->memory;
    if (memory->bytes < MAPPED_FROM)
        return aligned_alloc(memory->alignment, ROUND_UP(memory->bytes, memory->alignment));
    uint64_t whole = ROUND_UP(memory->bytes, HUGE_PAGE);
    unsigned char *wide = mmap(NULL, whole + HUGE_PAGE, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (wide == MAP_FAILED)
        return NULL;
    unsigned char *data = (unsigned char *)ROUND_UP((uintptr_t)wide, HUGE_PAGE);
    if (data > wide)
        munmap(wide, (size_t)(data - wide));
    munmap(data + whole, (size_t)(wide + HUGE_PAGE - data));
    madvise(data, whole, MADV_HUGEPAGE);
    own->mapped_bytes = whole;
    return data;
}

static void give_back(bp_memory *memory) {
    uint64_t mapped = ((bp_cpu_memory *)memory)->mapped_bytes;
    if (mapped)
        munmap(memory->host, mapped);
    else if (!memory->pinned)
        free(memory->host);
}

/* Launches may touch it from now on. */
static int32_t show(bp_device *device, bp_memory *memory) {
    memory->address = (uint64_t)(uintptr_t)memory->host;
    return bp_windows_add(bp_cpu_device_of(device)->windows, memory->address, memory->bytes);
}

static int32_t allocate(bp_device *device, bp_memory *memory) {
    unsigned char *data = storage((bp_cpu_memory *)memory);
    if (!data)
        return bp_fail(BP_OUT_OF_MEMORY, "the system refused %llu bytes",
                       (unsigned long long)memory->bytes);
    if (device->check)
        memset(data, JUNK_NEW, memory->bytes);
    memory->host = data;
    int32_t status = show(device, memory);
    if (status)
        give_back(memory);
    return status;
}

static int32_t pin(bp_device *device, bp_memory *memory) {
    return show(device, memory);
}

static void release(bp_device *device, bp_memory *memory) {
    bp_windows_remove(bp_cpu_device_of(device)->windows, memory->address, memory->bytes);
    if (device->check && !memory->pinned && !((bp_cpu_memory *)memory)->mapped_bytes)
        memset(memory->host, JUNK_RELEASED, memory->bytes);
    give_back(memory);
}

const bp_memory_driver bp_memory_driver_own = {
    .memory_bytes = sizeof(bp_cpu_memory),
    .default_alignment = BP_MEMORY_ALIGNMENT,
    .most_alignment = HUGE_PAGE,
    .allocate = allocate,
    .pin = pin,
    .release = release,
};
