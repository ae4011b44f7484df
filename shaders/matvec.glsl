// What matvec.comp and gated.comp share: two rows of a matrix times COLUMNS rows of the batch, at most eight, which the
// names of the push constants say.
#include "each.glsl"

const uint ROWS = 2, MOST_COLUMNS = 8;
vec2 sums[MOST_COLUMNS]; // this thread's parts, for each row of the batch

void clear_sums() { EACH(c, MOST_COLUMNS, COLUMNS) sums[c] = vec2(0); }

// Where a row of the batch comes from; the last is repeated.
uint input_row(uint column) {
    const uint row = min(column, n - 1);
    return EXPERTS ? row / from_share : row;
}

// Adds products to the sums, those of every threads-th piece: rows of the matrix from `row` on, rows of the batch from
// `column` on. Past the last of the matrix, `end` − 1, that is repeated.
void add_products(Weights matrix, uint row, uint end, uint column, uint thread, uint threads) {
    const uint blocks = columns / BLOCK_ELEMENTS, block0 = min(row, end - 1) * blocks,
               block1 = min(row + 1, end - 1) * blocks;
    uint x_row[MOST_COLUMNS];
    EACH(c, MOST_COLUMNS, COLUMNS) x_row[c] = input_row(column + c);
#ifdef HAS_CODES
    const uint pieces = BLOCK_ELEMENTS / 32, x_pieces = from_stride / 32;
    for (uint piece = thread; piece < columns / 32; piece += threads) {
        const codes w0 = unpack(matrix, grids, block0 + piece / pieces, piece % pieces),
                    w1 = unpack(matrix, grids, block1 + piece / pieces, piece % pieces);
        EACH(c, MOST_COLUMNS, COLUMNS) {
            const Piece x = read_piece(from_codes, x_row[c], x_pieces, piece);
            sums[c] += vec2(multiply(w0, x), multiply(w1, x));
        }
    }
#else
    // Eight at a time, so that neighbouring threads read neighbouring vectors.
    for (uint eight = thread; eight < (columns + 7) / 8; eight += threads) {
        float v[8], w[8];
        decode_eight(matrix, block0, eight, columns, v);
        decode_eight(matrix, block1, eight, columns, w);
        const vec4 v0 = vec4(v[0], v[1], v[2], v[3]), v1 = vec4(v[4], v[5], v[6], v[7]),
                   w0 = vec4(w[0], w[1], w[2], w[3]), w1 = vec4(w[4], w[5], w[6], w[7]);
        EACH(c, MOST_COLUMNS, COLUMNS) {
            const uint at = x_row[c] * (from_stride / 4) + 2 * eight;
            const vec4 x = from.v[at], y = from.v[at + 1];
            sums[c] += vec2(dot(v0, x) + dot(v1, y), dot(w0, x) + dot(w1, y));
        }
    }
#endif
}
