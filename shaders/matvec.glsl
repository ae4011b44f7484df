// What matvec.comp and gated.comp share: rows of a matrix times a few rows of the batch, which the names of the push
// constants say.

float sum[ROWS][COLUMNS]; // this thread's part

// Adds products to `sum`, those of every threads-th piece: rows of the matrix from `row` on, rows of the batch from
// `column` on. Past the last of the matrix, `end` − 1, or of the batch, that is repeated. Where rows begin is found out
// before the loop: of experts that takes a division.
void add_products(Weights matrix, uint row, uint end, uint column, uint thread, uint threads) {
    uint first_block[ROWS], x_row[COLUMNS];
    [[unroll]] for (uint r = 0; r < ROWS; r++) first_block[r] = min(row + r, end - 1) * (columns / BLOCK_ELEMENTS);
    [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
        x_row[c] = min(column + c, n - 1);
        if (EXPERTS) x_row[c] /= from_share;
    }
#ifdef HAS_CODES
    const uint pieces = BLOCK_ELEMENTS / 32, x_pieces = from_stride / 32;
    for (uint piece = thread; piece < columns / 32; piece += threads) {
        codes w[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++)
            w[r] = unpack(matrix, grids, first_block[r] + piece / pieces, piece % pieces);
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            const Piece x = read_piece(from_codes, x_row[c], x_pieces, piece);
            [[unroll]] for (uint r = 0; r < ROWS; r++) sum[r][c] += multiply(w[r], x);
        }
    }
#else
    // Eight at a time, so that neighbouring threads read neighbouring vectors.
    for (uint eight = thread; eight < (columns + 7) / 8; eight += threads) {
        float w[ROWS][8];
        [[unroll]] for (uint r = 0; r < ROWS; r++) decode_eight(matrix, first_block[r], eight, columns, w[r]);
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            const uint at = x_row[c] * (from_stride / 4) + 2 * eight;
            const vec4 x = from.v[at], y = from.v[at + 1];
            [[unroll]] for (uint r = 0; r < ROWS; r++)
                sum[r][c] += dot(vec4(w[r][0], w[r][1], w[r][2], w[r][3]), x) +
                             dot(vec4(w[r][4], w[r][5], w[r][6], w[r][7]), y);
        }
    }
#endif
}

void clear_sum() {
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) sum[r][c] = 0;
}
