// What becomes of the sums of a matrix: bias, scale, softcap, and where they go. For the push constants to, bias, rows,
// to_stride, scale, softcap, biased and adds.

void finish(uint row, uint column, uint expert, float x) {
    if (biased != 0) x += bias.v[expert * rows + row];
    x *= scale;
    if (softcap != 0) x = softcap * tanh(x / softcap);
    const uint at = column * to_stride + row;
    to.v[at] = adds != 0 ? to.v[at] + x : x;
}
