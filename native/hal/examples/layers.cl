/* The kernels of layers.c in OpenCL C; each is launched as one work-group. */

/* out = row `id` of table [ids, width] */
kernel void embed(global float *out, global const float *table, uint id, uint width) {
    for (uint i = get_local_id(0); i < width; i += get_local_size(0))
        out[i] = table[id * width + i];
}

/* out = x * weight / sqrt(mean(x^2) + 1e-5); out is not x */
kernel void rmsnorm(global float *out, global const float *x, global const float *weight,
                    uint width) {
    float sum = 0;
    for (uint i = 0; i < width; i++)
        sum += x[i] * x[i];
    float scale = 1.0f / sqrt(sum / (float)width + 1e-5f);
    for (uint i = get_local_id(0); i < width; i += get_local_size(0))
        out[i] = x[i] * scale * weight[i];
}

/* out [count] = k [count, width] q / sqrt(width) */
kernel void scores(global float *out, global const float *q, global const float *k, uint count,
                   uint width) {
    for (uint s = get_local_id(0); s < count; s += get_local_size(0)) {
        float sum = 0;
        for (uint i = 0; i < width; i++)
            sum += q[i] * k[s * width + i];
        out[s] = sum / sqrt((float)width);
    }
}

/* out [width] = softmax(scores [count]) v [count, width] */
kernel void attend(global float *out, global const float *scores, global const float *v,
                   uint count, uint width) {
    float most = scores[0], total = 0;
    for (uint s = 1; s < count; s++)
        most = fmax(most, scores[s]);
    for (uint s = 0; s < count; s++)
        total += exp(scores[s] - most);
    for (uint i = get_local_id(0); i < width; i += get_local_size(0)) {
        float sum = 0;
        for (uint s = 0; s < count; s++)
            sum += exp(scores[s] - most) * v[s * width + i];
        out[i] = sum / total;
    }
}

/* out = gate / (1 + exp(-gate)) * up */
kernel void silu_mul(global float *out, global const float *gate, global const float *up, uint n) {
    for (uint i = get_local_id(0); i < n; i += get_local_size(0))
        out[i] = gate[i] / (1.0f + exp(-gate[i])) * up[i];
}
