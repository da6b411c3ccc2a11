/* The kernels of arithmetic.c in OpenCL C; a block is a work-group of 64. */

/* out[i] = x[i] + y[i] */
kernel void add(global float *out, global const float *x, global const float *y, uint n) {
    size_t i = get_global_id(0);
    if (i < n)
        out[i] = x[i] + y[i];
}

/* out[i] = a * x[i] */
kernel void scale(global float *out, global const float *x, float a, uint n) {
    size_t i = get_global_id(0);
    if (i < n)
        out[i] = a * x[i];
}

/* out[block] = sum of x[i] * y[i] over the block's 64 elements */
kernel void dot_blocks(global float *out, global const float *x, global const float *y, uint n) {
    uint block = get_group_id(0), size = get_local_size(0);
    if (get_local_id(0) != 0)
        return;
    float sum = 0;
    for (uint i = block * size; i < min((block + 1) * size, n); i++)
        sum += x[i] * y[i];
    out[block] = sum;
}

/* out [rows, columns] = a [rows, inner] b [inner, columns]; a block is a row */
kernel void product(global float *out, global const float *a, global const float *b, uint rows,
                    uint inner, uint columns) {
    uint row = get_group_id(0);
    for (uint column = get_local_id(0); column < columns; column += get_local_size(0)) {
        float sum = 0;
        for (uint k = 0; k < inner; k++)
            sum += a[row * inner + k] * b[k * columns + column];
        out[row * columns + column] = sum;
    }
}
