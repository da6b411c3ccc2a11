/* Generated from native/hal/spec.toml by python -m bedplate.hal.spec; do not edit. */
#ifndef BEDPLATE_HAL_STUBS_H
#define BEDPLATE_HAL_STUBS_H

/* clang-format off */
#include "bedplate/hal.h"

/* Leaves the text of an absent function and returns BP_UNSUPPORTED. */
int32_t bp_hal_absent(const char *function);

/* Copies what was given, however short, and puts a stub in every empty slot. */
void bp_hal_fill_core(bp_core *out, const bp_core *given);
void bp_hal_fill_mem(bp_mem *out, const bp_mem *given);
void bp_hal_fill_queue(bp_queue *out, const bp_queue *given);
void bp_hal_fill_timeline(bp_timeline *out, const bp_timeline *given);
void bp_hal_fill_module(bp_module *out, const bp_module *given);
void bp_hal_fill_capture(bp_capture *out, const bp_capture *given);
void bp_hal_fill_ops(bp_ops *out, const bp_ops *given);
void bp_hal_fill_tensor_maps(bp_tensor_maps *out, const bp_tensor_maps *given);

#endif
