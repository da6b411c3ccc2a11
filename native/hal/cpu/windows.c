/* See windows.h. */
#include "windows.h"

#include "../error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct bp_windows {
    pthread_mutex_t lock;
    /* Ascending by base; entries over the same bytes are all here. */
    bp_native_window *entry;
    uint64_t count, room;
    /* What the next launch holds; null when something changed since. */
    bp_window_table *made;
};

static int32_t lacking(void) {
    return bp_fail(BP_OUT_OF_MEMORY, "no host memory for the table of a device's memory");
}

bp_windows *bp_windows_create(void) {
    bp_windows *made = calloc(1, sizeof(*made));
    if (made)
        pthread_mutex_init(&made->lock, NULL);
    else
        lacking();
    return made;
}

void bp_windows_drop(bp_window_table *table) {
    if (table && atomic_fetch_sub_explicit(&table->holders, 1, memory_order_acq_rel) == 1)
        free(table);
}

void bp_windows_destroy(bp_windows *windows) {
    if (!windows)
        return;
    bp_windows_drop(windows->made);
    pthread_mutex_destroy(&windows->lock);
    free(windows->entry);
    free(windows);
}

static void changed(bp_windows *windows) {
    bp_windows_drop(windows->made);
    windows->made = NULL;
}

/* The first entry at or behind an address. */
static uint64_t place_of(const bp_windows *windows, uint64_t address) {
    uint64_t low = 0, high = windows->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (windows->entry[middle].base < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int32_t make_room(bp_windows *windows) {
    if (windows->count < windows->room)
        return BP_OK;
    uint64_t room = windows->room ? 2 * windows->room : 64;
    bp_native_window *larger = realloc(windows->entry, room * sizeof(*larger));
    if (!larger)
        return lacking();
    windows->entry = larger;
    windows->room = room;
    return BP_OK;
}

int32_t bp_windows_add(bp_windows *windows, uint64_t address, uint64_t bytes) {
    if (!windows)
        return BP_OK;
    pthread_mutex_lock(&windows->lock);
    int32_t status = make_room(windows);
    if (status == BP_OK) {
        uint64_t at = place_of(windows, address);
        bp_native_window *entry = &windows->entry[at];
        memmove(entry + 1, entry, (windows->count - at) * sizeof(*entry));
        *entry = (bp_native_window){address, bytes, (void *)(uintptr_t)address};
        windows->count++;
        changed(windows);
    }
    pthread_mutex_unlock(&windows->lock);
    return status;
}

void bp_windows_remove(bp_windows *windows, uint64_t address, uint64_t bytes) {
    if (!windows)
        return;
    pthread_mutex_lock(&windows->lock);
    uint64_t at = place_of(windows, address);
    while (at < windows->count && windows->entry[at].base == address &&
           windows->entry[at].bytes != bytes)
        at++;
    if (at < windows->count && windows->entry[at].base == address) {
        bp_native_window *entry = &windows->entry[at];
        memmove(entry, entry + 1, (windows->count - at - 1) * sizeof(*entry));
        windows->count--;
        changed(windows);
    }
    pthread_mutex_unlock(&windows->lock);
}

static uint64_t end_of(const bp_native_window *window) {
    return window->base + window->bytes;
}

/* The table of the entries; neighbours that only touch stay two, so that bounds are known. */
static bp_window_table *make(const bp_windows *windows) {
    bp_window_table *table = malloc(sizeof(*table) + windows->count * sizeof(table->window[0]));
    if (!table)
        return NULL;
    atomic_init(&table->holders, 1);
    table->count = 0;
    for (uint64_t i = 0; i < windows->count; i++) {
        const bp_native_window *entry = &windows->entry[i];
        bp_native_window *last = &table->window[table->count - (table->count > 0)];
        if (!table->count || entry->base >= end_of(last))
            table->window[table->count++] = *entry;
        else if (end_of(entry) > end_of(last))
            last->bytes = end_of(entry) - last->base;
    }
    return table;
}

int32_t bp_windows_hold(bp_windows *windows, bp_window_table **out) {
    *out = NULL;
    if (!windows)
        return BP_OK;
    pthread_mutex_lock(&windows->lock);
    if (!windows->made)
        windows->made = make(windows);
    *out = windows->made;
    if (*out)
        atomic_fetch_add_explicit(&(*out)->holders, 1, memory_order_relaxed);
    pthread_mutex_unlock(&windows->lock);
    return *out ? BP_OK : lacking();
}
