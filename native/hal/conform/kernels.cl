/*
 * Kernels of the conformance suite in OpenCL C: those of kernels.c that ask nothing of the native
 * launch ABI. A work-group is a block.
 */

static uint block_number(void) {
    return get_group_id(0) +
           get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2));
}

/* out u32[blocks]: adds 1 to its own word, so each block must run exactly once. */
kernel void count_blocks(global uint *out) {
    if (get_local_id(0) == 0)
        atomic_inc(&out[block_number()]);
}

/* out f32[n], x f32[n], a f32, n u32; one thread an element: out = a * x. */
kernel void scale(global float *out, global const float *x, float a, uint n) {
    size_t i = get_global_id(0);
    if (i < n)
        out[i] = a * x[i];
}

/* out u32[6]: grid and block, from the last thread. */
kernel void shape(global uint *out) {
    for (uint axis = 0; axis < 3; axis++) {
        if (get_global_id(axis) + 1 != get_global_size(axis))
            return;
    }
    for (uint axis = 0; axis < 3; axis++) {
        out[axis] = (uint)get_num_groups(axis);
        out[3 + axis] = (uint)get_local_size(axis);
    }
}

/* out u32[threads]: each thread its own number, so each must run exactly once. */
kernel void count_threads(global uint *out) {
    atomic_inc(&out[get_global_id(0)]);
}

/* out u32, value u32: out = value; a null out writes nothing. */
kernel void store(global uint *out, uint value) {
    if (out)
        *out = value;
}

/* out u32[blocks], bytes u32: fills its whole shared memory with the block's number and counts what
 * it reads back. */
kernel void use_shared(global uint *out, uint bytes, local uint *shared) {
    uint number = block_number(), same = 0;
    for (uint i = 0; i < bytes / 4; i++)
        shared[i] = number;
    for (uint i = 0; i < bytes / 4; i++)
        same += shared[i] == number;
    out[number] = same;
}

/* Nothing: what a launch costs. */
kernel void nothing(void) {
}
