/* The one export of the cpu backend. */
#include "backend.h"

int32_t bedplate_hal_backend_query(const bp_host *host, uint32_t wanted_major, const bp_api **out) {
    return bp_cpu_query(host, wanted_major, out);
}
