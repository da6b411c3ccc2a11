/* Words in pinned host memory for timelines; see word.c. */
#ifndef BEDPLATE_HAL_CUDA_WORD_H
#define BEDPLATE_HAL_CUDA_WORD_H

#include "timeline.h"

/* Gives the timeline a word of its own, content undefined; BP_OUT_OF_MEMORY. Under the lock. */
int32_t bp_cuda_word_take(bp_cuda_device *device, bp_cuda_timeline *timeline);
void bp_cuda_word_give(bp_cuda_device *device, const bp_cuda_timeline *timeline);

#endif
