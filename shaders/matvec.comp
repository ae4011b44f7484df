#version 450
// A matrix times a few rows of the batch: a work group computes two rows of the matrix for COLUMNS rows of the batch,
// its threads taking turns along the columns of the matrix.
#include "common.glsl"
#include "blocks.glsl"
#include "matmul.glsl"
#extension GL_KHR_shader_subgroup_arithmetic : require

const uint THREADS = 64;
layout(local_size_x = 64) in;

layout(constant_id = 0) const uint COLUMNS = 1;
layout(constant_id = 1) const bool EXPERTS = false; // the matrix is that of an expert, which each row has its own of
#include "matvec.glsl"

shared float parts[ROWS * COLUMNS][THREADS]; // of subgroups, which are THREADS at most

void main() {
    const uint t = gl_LocalInvocationIndex;
    const uint first_row = (gl_WorkGroupID.y + gl_WorkGroupID.z * gl_NumWorkGroups.y) * ROWS;
    const uint first_column = gl_WorkGroupID.x * COLUMNS; // those of the same rows run at once: memory is read once
    const uint expert = EXPERTS ? uint(choices.v[2 * first_column]) : 0;
    if (first_row >= rows) return;
    clear_sums();
    add_products(matrix, expert * rows + first_row, (expert + 1) * rows, first_column, t, THREADS);
    EACH(c, MOST_COLUMNS, COLUMNS) {
        const vec2 part = subgroupAdd(sums[c]);
        if (subgroupElect()) parts[c][gl_SubgroupID] = part.x, parts[COLUMNS + c][gl_SubgroupID] = part.y;
    }
    barrier();
    if (t >= ROWS * COLUMNS || first_row + t / COLUMNS >= rows || first_column + t % COLUMNS >= n) return;
    float x = 0;
    for (uint i = 0; i < gl_NumSubgroups; i++) x += parts[t][i];
    finish(first_row + t / COLUMNS, first_column + t % COLUMNS, expert, x);
}
