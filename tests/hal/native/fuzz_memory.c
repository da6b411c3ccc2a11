/* The fuzzer's calls of the mem table: sizes from none to more than any machine has. */
#include "fuzz.h"

void fuzz_memory(fuzzer *own) {
    uint64_t *out = place(own), device = fuzz_device(own);
    bp_memory_info info = {.head = {1, sizeof(info)}};
    bp_external external = {.head = {1, sizeof(external)}, .kind = 1, .value = number(own)};
    bp_range range = {handle(own, MEMORIES), number(own), number(own)};
    switch (below(own, 12)) {
    case 0:
    case 1:
    case 2:
        info.bytes = chance(own, 80) ? 64 + below(own, 8192) : number(own);
        /* Large, or larger than any machine: what lies between would be given, and filled. */
        if (info.bytes > 1ull << 22 && info.bytes < 1ull << 46)
            info.bytes = 1ull << 22;
        info.alignment = chance(own, 80) ? 64 : number(own);
        made(own, MEMORIES, CALL(api->mem->create(device, GIVEN(own, info), out), out), out);
        break;
    case 3:
        CALL(api->mem->release(device, handle(own, MEMORIES)), NULL);
        break;
    case 4:
    case 5:
        CALL(api->mem->describe(device, handle(own, MEMORIES), GIVEN(own, info)), NULL);
        break;
    case 6: {
        uint64_t at = below(own, PINNED);
        uint64_t bytes = chance(own, 80) ? below(own, PINNED - at + 1) : UINT64_MAX - below(own, 9);
        void *host = chance(own, 10) ? NULL : own->pinned + at;
        made(own, MEMORIES, CALL(api->mem->pin(own->device, host, bytes, out), out), out);
        break;
    }
    case 7:
        CALL(api->mem->reserve(device, number(own), number(own), out), out);
        break;
    case 8:
        CALL(api->mem->map(device, number(own), &range), NULL);
        break;
    case 9:
        CALL(api->mem->unmap(device, number(own), number(own)), NULL);
        break;
    case 10:
        CALL(api->mem->export_memory(device, handle(own, MEMORIES), GIVEN(own, external)), NULL);
        break;
    default:
        CALL(api->mem->import_memory(device, GIVEN(own, external), out), out);
    }
}
