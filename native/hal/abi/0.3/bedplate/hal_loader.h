/* Generated from native/hal/spec.toml by python -m bedplate.hal.spec; do not edit.
 *
 * The loader, libbedplate_hal: opens a backend and hands back a table without holes.
 */
#ifndef BEDPLATE_HAL_LOADER_H
#define BEDPLATE_HAL_LOADER_H

#include "bedplate/hal.h"

/* clang-format off */
#ifdef __cplusplus
extern "C" {
#endif

/* What to load. The caller has decided that the file may be trusted; the loader only opens it. */
typedef struct bp_load_options {
    bp_head head;
    /* absolute path of the library */
    bp_text path;
    /* null is the loader's own, which logs to stderr when BEDPLATE_HAL_LOG is set */
    const bp_host *host;
    /* wanted; 0 with minor 0 is this build's */
    uint32_t major;
    uint32_t minor;
    uint64_t reserved[4];
    /* of the file that was checked: it is loaded, whatever lies at path by now; 0 is none */
    int32_t descriptor;
    uint32_t pad;
} bp_load_options;

/* dlopen (now, local), query, negotiate, fill. The result lives until the process ends; the same
 * path gives the same result. With a descriptor the same file does: one that was replaced is
 * loaded beside the old one, one that was changed in place is refused. */
BP_EXPORT int32_t bp_hal_load(const bp_load_options *options, const bp_api **out);

/* Checks and completes an answer that did not come from a file: the second half of bp_hal_load. */
BP_EXPORT int32_t bp_hal_adopt(const bp_api *answer, uint32_t major, uint32_t minor, const bp_api **out);

/* The complete bp.ops.1 table of a loaded backend; BP_UNSUPPORTED without one. */
BP_EXPORT int32_t bp_hal_ops(const bp_api *api, const bp_ops **out);

/* The complete bp.tensor_map.1 table of a loaded backend; BP_UNSUPPORTED without one. Since 0.3. */
BP_EXPORT int32_t bp_hal_tensor_maps(const bp_api *api, const bp_tensor_maps **out);

/* Text of the calling thread's last failure inside the loader or a stub; empty after it was
 * read. */
BP_EXPORT int32_t bp_hal_last_error(char *buffer, uint64_t capacity, uint64_t *length);

/* The ABI this loader was built with. */
BP_EXPORT int32_t bp_hal_version(uint32_t *major, uint32_t *minor);

#ifdef __cplusplus
}
#endif

#endif /* BEDPLATE_HAL_LOADER_H */
