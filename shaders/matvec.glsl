// What matvec.comp and gated.comp share: rows of a matrix times a few rows of the batch, which the names of the push
// constants say.

float sum[ROWS][COLUMNS]; // this thread's part

// Adds products to `sum`, those of every step-th piece: rows of the matrix from `row` on, rows of the batch from
// `column` on. Past the last of the matrix, `end` − 1, or of the batch, that is repeated.
void add_products(Weights matrix, uint row, uint end, uint column, uint first_piece, uint step) {
    const uint row_blocks = columns / BLOCK_ELEMENTS;
    for (uint piece = first_piece; piece < (columns + 31) / 32; piece += step) {
#ifdef HAS_CODES
        const uint pieces = BLOCK_ELEMENTS / 32;
        codes w[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++)
            w[r] = unpack(matrix, grids, min(row + r, end - 1) * row_blocks + piece / pieces, piece % pieces);
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            const Piece x = from_codes.v[min(column + c, n - 1) / from_share * (from_stride / 32) + piece];
            [[unroll]] for (uint r = 0; r < ROWS; r++) sum[r][c] += multiply(w[r], x);
        }
#else
        float w[ROWS][32];
        [[unroll]] for (uint r = 0; r < ROWS; r++)
            decode(matrix, grids, min(row + r, end - 1) * row_blocks, piece, columns, w[r]);
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            const uint at = min(column + c, n - 1) / from_share * (from_stride / 4) + 8 * piece;
            [[unroll]] for (uint i = 0; i < 8; i++) {
                const vec4 x = from.v[at + i];
                [[unroll]] for (uint r = 0; r < ROWS; r++)
                    sum[r][c] += dot(vec4(w[r][4 * i], w[r][4 * i + 1], w[r][4 * i + 2], w[r][4 * i + 3]), x);
            }
        }
#endif
    }
}

void clear_sum() {
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) sum[r][c] = 0;
}
