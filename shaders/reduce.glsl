// Sums and maxima over a work group of THREADS; every thread gets the result.
#extension GL_KHR_shader_subgroup_arithmetic : require

shared float reduced[THREADS]; // of subgroups

#define REDUCE(name, subgroup_reduce, combine)                                                                         \
    float name(float x) {                                                                                              \
        const float part = subgroup_reduce(x);                                                                         \
        barrier();                                                                                                     \
        if (subgroupElect()) reduced[gl_SubgroupID] = part;                                                            \
        barrier();                                                                                                     \
        float all = reduced[0];                                                                                        \
        for (uint i = 1; i < gl_NumSubgroups; i++) all = combine;                                                      \
        return all;                                                                                                    \
    }
REDUCE(group_sum, subgroupAdd, all + reduced[i])
REDUCE(group_max, subgroupMax, max(all, reduced[i]))
