/*
 * The memory of a device as launches are told of it: windows of device addresses, ascending, merged
 * where two handles are over the same bytes, so that one search finds an address.
 *
 * A launch holds the table as it was when it began. What is released meanwhile is kept by the
 * chassis until no batch can know it, so a held table never names memory that is gone. The table is
 * made when a launch asks for it, not at each change: a model's weights are hundreds of changes.
 */
#ifndef BEDPLATE_HAL_CPU_WINDOWS_H
#define BEDPLATE_HAL_CPU_WINDOWS_H

#include "bedplate/hal.h"

#include <stdatomic.h>

typedef struct bp_windows bp_windows;

typedef struct bp_window_table {
    _Atomic uint32_t holders;
    uint64_t count;
    bp_native_window window[];
} bp_window_table;

/* None; null with a sentence without memory. */
bp_windows *bp_windows_create(void);
void bp_windows_destroy(bp_windows *windows);

/* From any thread. A null `windows` takes everything and holds nothing. Adding may be
 * BP_OUT_OF_MEMORY; removing takes what was added with the same numbers. */
int32_t bp_windows_add(bp_windows *windows, uint64_t address, uint64_t bytes);
void bp_windows_remove(bp_windows *windows, uint64_t address, uint64_t bytes);

/* The table of now, for bp_windows_drop; null for null. BP_OUT_OF_MEMORY with a sentence. */
int32_t bp_windows_hold(bp_windows *windows, bp_window_table **out);
void bp_windows_drop(bp_window_table *table);

#endif
