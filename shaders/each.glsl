// Loops to a specialisation constant `n`, at most `most`. glslc unrolls them, since it knows `most`: what is indexed in
// loops that it leaves to drivers they may keep in memory.
#define EACH(i, most, n) [[unroll]] for (uint i = 0; i < most; i++) if (i < n)
