/* The table bp.tensor_map.1; see tensor_map.c. */
#ifndef BEDPLATE_HAL_CUDA_TENSOR_MAP_H
#define BEDPLATE_HAL_CUDA_TENSOR_MAP_H

#include "device.h"

extern const bp_tensor_maps bp_cuda_tensor_maps_table;

#endif
