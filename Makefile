# confab: see `make help`.
MODEL   ?=
PREFIX  ?= /usr/local
CC      ?= cc
VARIANT ?= release

BUILD    = build/$(VARIANT)
WARNINGS = -Wall -Wextra -Wshadow
PACKAGES = ncursesw readline libutf8proc libpcre2-8 sqlite3
CFLAGS   = $(CFLAGS_$(VARIANT)) -g -std=c17 -D_GNU_SOURCE $(WARNINGS) -pthread -I. -I$(BUILD) $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)
LDFLAGS  = $(LDFLAGS_$(VARIANT)) -pthread
LDLIBS   = $(shell pkg-config --libs $(PACKAGES) 2>/dev/null) -lmd4c -lm

CFLAGS_release = -O2
CFLAGS_asan    = -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
LDFLAGS_asan   = -fsanitize=address,undefined
CFLAGS_tsan    = -O1 -fsanitize=thread
LDFLAGS_tsan   = -fsanitize=thread

# Kernels are compiled once per instruction set; the rest of the program assumes the baseline.
# Every file under engine/cpu keeps to one rounding: no contraction the source does not ask for.
ISA_avx2   = -mavx2 -mfma -mf16c
ISA_avx512 = -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mprefer-vector-width=512

SOURCES = $(wildcard engine/*.c engine/*/*.c ui/*.c app/*.c)
OBJECTS = $(SOURCES:%.c=$(BUILD)/%.o)
LIBRARY = $(BUILD)/libconfab.a
TESTS   = $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c tests/kernels/test_*.c tests/golden/test_*.c tests/faults/test_*.c))
HELPERS = $(patsubst tests/%.c,$(BUILD)/tests/%.o,$(filter-out tests/unit/test_%.c tests/kernels/test_%.c tests/golden/test_%.c tests/faults/test_%.c,$(wildcard tests/unit/*.c tests/kernels/*.c tests/golden/*.c tests/faults/*.c)))

all: confab

confab: $(BUILD)/confab
	@cp $< $@

$(BUILD)/confab: $(BUILD)/app/main.o $(LIBRARY)
	$(CC) $(LDFLAGS) -o $@ $< $(LIBRARY) $(LDLIBS)

# The files of themes/ as C strings.
$(BUILD)/themes.c: themes/embed.awk $(wildcard themes/*.theme)
	@mkdir -p $(@D)
	awk -f themes/embed.awk $(filter %.theme,$^) > $@.part && mv $@.part $@

$(BUILD)/themes.o: $(BUILD)/themes.c
	$(CC) $(CFLAGS) -c -o $@ $<

$(LIBRARY): $(filter-out $(BUILD)/app/main.o,$(OBJECTS)) $(BUILD)/themes.o
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(if $(findstring engine/cpu/,$<),-ffp-contract=off) $(ISA_$(lastword $(subst _, ,$(basename $(notdir $<))))) -MMD -MP -c -o $@ $<

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(HELPERS) $(LIBRARY)
	$(CC) $(LDFLAGS) -o $@ $< $(HELPERS) $(LIBRARY) $(LDLIBS) -lcmocka -lvterm

tests: $(TESTS)

clean:
	rm -rf build confab

.PHONY: all tests clean
.PRECIOUS: $(BUILD)/%.o
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
