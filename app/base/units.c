#include "app/base/units.h"

#include <stdio.h>

// Three significant digits of value / base^k, and the unit for k.
static const char *scaled(double value, double base, const char *const *units, int n_units, char out[24]) {
    int unit = 0;
    while (value >= base && unit < n_units - 1) value /= base, unit++;
    int decimals = unit == 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
    snprintf(out, 24, "%.*f%s%s", decimals, value, *units[unit] ? " " : "", units[unit]);
    return out;
}

const char *units_bytes(double bytes, char out[24]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    return scaled(bytes, 1024, units, 5, out);
}

const char *units_count(double count, char out[24]) {
    static const char *const units[] = {"", "K", "M", "B", "T"};
    return scaled(count, 1000, units, 5, out);
}

const char *units_whole(uint64_t n, char out[32]) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}
