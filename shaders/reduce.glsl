// Sums and maxima over a work group of THREADS; every thread gets the result.
#extension GL_KHR_shader_subgroup_arithmetic : require

// Of subgroups. Reductions take turns at the two: whoever writes to one of them again has seen all threads come to the
// reduction in between, and so leave the one before.
shared float reduced[2][THREADS];
uint reduction = 0;

#define REDUCE(name, subgroup_reduce, combine)                                                                         \
    float name(float x) {                                                                                              \
        const float part = subgroup_reduce(x);                                                                         \
        reduction ^= 1;                                                                                                \
        if (subgroupElect()) reduced[reduction][gl_SubgroupID] = part;                                                 \
        barrier();                                                                                                     \
        float all = reduced[reduction][0];                                                                             \
        for (uint i = 1; i < gl_NumSubgroups; i++) all = combine;                                                      \
        return all;                                                                                                    \
    }
REDUCE(group_sum, subgroupAdd, all + reduced[reduction][i])
REDUCE(group_max, subgroupMax, max(all, reduced[reduction][i]))
