// What matvec.comp and matmul.comp share: the matrix and the rows of the batch.

layout(push_constant, scalar) uniform Push {
    Weights matrix; // [rows, columns]; those of experts one behind the other
    Grids grids;
    Vectors from;  // [n, from_stride], zero behind the columns
    Pieces from_codes;  // the same quantised: read by quantised formats instead
    Floats to;     // [n, to_stride]
    Floats bias;   // [rows], or for each expert
    Ints choices;  // matvec: [n] pairs of an expert and a weight
    Ints order;    // matmul: [n] rows of the batch in the order of their experts,
    Tiles tiles;   // divided into tiles
    uint rows, columns, n, from_stride, to_stride, from_share; // from_share: rows of `to` for each row of `from`
    float scale, softcap;
    uint biased, adds;
};

#include "finish.glsl"
