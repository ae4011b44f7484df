# confab: see `make help`.
MODEL   ?=
PREFIX  ?= /usr/local
CC      ?= cc
VARIANT ?= release

BUILD    = build/$(VARIANT)
WARNINGS = -Wall -Wextra -Wshadow
PACKAGES = ncursesw readline libutf8proc sqlite3 jansson md4c libmicrohttpd
PACKAGE_CFLAGS := $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)
PACKAGE_LIBS   := $(shell pkg-config --libs $(PACKAGES) 2>/dev/null)
# CPPFLAGS, CFLAGS and LDFLAGS are the builder's own: they are added to what is needed, and come after it.
ALL_CFLAGS  = $(CFLAGS_$(VARIANT)) -g -std=c17 -D_GNU_SOURCE -fvisibility=hidden $(WARNINGS) -pthread -I. -I$(BUILD) \
	$(PACKAGE_CFLAGS) $(CPPFLAGS) $(CFLAGS)
ALL_LDFLAGS = $(LDFLAGS_$(VARIANT)) -pthread $(LDFLAGS)
LDLIBS      = $(PACKAGE_LIBS) -lm

CFLAGS_release = -O2
CFLAGS_clang   = -O2 -Werror
CFLAGS_asan    = -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
LDFLAGS_asan   = -fsanitize=address,undefined
CFLAGS_tsan    = -O1 -fsanitize=thread
LDFLAGS_tsan   = -fsanitize=thread
CFLAGS_fuzz    = -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
LDFLAGS_fuzz   = -fsanitize=address,undefined

# Kernels are compiled once per instruction set; the rest of the program assumes the baseline.
# Every file under engine/cpu, engine/format and engine/serve keeps to one rounding: no contraction the source does not ask for.
ifneq ($(filter x86_64%,$(shell $(CC) -dumpmachine)),)
ISA_avx2    = -O3 -mavx2 -mfma -mf16c
ISA_avxvnni = $(ISA_avx2) -mavxvnni
ISA_evex    = $(ISA_avx2) -mavx512f -mavx512vl -mavx512vnni -mprefer-vector-width=256 -ffp-contract=off
ISA_avx512  = -O3 -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mprefer-vector-width=512
endif

# With glslc and Vulkan's headers confab computes on GPUs too; with OpenBLAS's header it has faster matmuls for
# processors that it has no kernels for. Both libraries are opened when it runs. VULKAN=, BLAS=: without.
VULKAN := $(shell command -v glslc > /dev/null && pkg-config --exists vulkan 2> /dev/null && echo yes)
BLAS   := $(shell pkg-config --exists openblas 2> /dev/null && echo yes)
# The extension for cooperative matrices that glslc knows, found out with the shader itself.
COOPERATIVE := $(if $(VULKAN),$(shell for extension in KHR NV; do glslc --target-env=vulkan1.2 -Ishaders \
	-DCOOPERATIVE_$$extension -o /dev/null shaders/cooperative.comp 2> /dev/null && echo $$extension && break; done))
COOPERATIVE_CFLAGS = -DCONFAB_COOPERATIVE_$(COOPERATIVE)
BLAS_CFLAGS = $(shell pkg-config --cflags openblas)
BLAS_LIBS   = $(if $(BLAS),$(shell pkg-config --libs openblas))
SOURCES = $(filter-out $(if $(VULKAN),,engine/vulkan/%),$(wildcard engine/*.c engine/*/*.c ui/*.c app/*.c app/*/*.c))
OBJECTS = $(SOURCES:%.c=$(BUILD)/%.o) $(if $(VULKAN),$(BUILD)/shaders.o)
LIBRARY = $(BUILD)/libconfab.a
TESTS   = $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/*/test_*.c tests/unit/*/*/test_*.c tests/kernels/test_*.c tests/golden/test_*.c tests/faults/test_*.c tests/peer/test_*.c))
HELPERS = $(patsubst tests/%.c,$(BUILD)/tests/%.o,$(filter-out tests/$(1)/test_%.c tests/$(1)/bench_%.c,$(wildcard tests/$(1)/*.c)))
FUERS = $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/fuzz/fuzz_*.c))
MUTATORS = $(FUERS:$(BUILD)/tests/fuzz/fuzz_%=$(BUILD)/tests/fuzz/mutate_%)
MANUALS = $(patsubst %.in,%,$(wildcard man/*.in))
FU_SECONDS ?= 60

# V=1 shows whole commands.
say = $(if $(V),,@echo '  $(1)  $(2)';)

# Of what the build is without: its name, what it is for, packages.
WITHOUT = $(strip $(if $(VULKAN),,Vulkan GPUs 'glslc and libvulkan-dev') \
	$(if $(VULKAN),$(if $(filter KHR,$(COOPERATIVE)),,GL_KHR_cooperative_matrix \
		'the matrix units of $(if $(COOPERATIVE),AMD and Intel GPUs,GPUs)' 'glslc of 2024 or later')) \
	$(if $(BLAS),,OpenBLAS 'processors without AVX2' libopenblas-dev))

all: confab ## build ./confab
	@test -z "$(WITHOUT)" || printf 'Built without %s: for %s install %s, and run `make` again.\n' $(WITHOUT)

confab: $(BUILD)/confab
	@cp $< $@.part && mv $@.part $@

$(BUILD)/confab: $(BUILD)/app/main.o $(LIBRARY)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $< $(LIBRARY) $(LDLIBS)

# The commit that it is built from; where git does not tell, as under sudo, what it told before.
$(BUILD)/commit: always
	@mkdir -p $(@D)
	@test -e .git && commit=$$(git describe --always --dirty 2> /dev/null) || commit=$$(cat $@ 2> /dev/null); \
		echo "$$commit" | cmp -s - $@ || echo "$$commit" > $@
$(BUILD)/app/main.o: $(BUILD)/commit
$(BUILD)/app/main.o: ALL_CFLAGS += -DCONFAB_COMMIT='"$(shell cat $(BUILD)/commit)"'

# The files of themes/ as C strings.
$(BUILD)/themes.c: themes/embed.awk $(wildcard themes/*.theme)
	@mkdir -p $(@D)
	$(call say,AWK,$@)awk -f themes/embed.awk $(filter %.theme,$^) > $@.part && mv $@.part $@

$(BUILD)/themes.o: $(BUILD)/themes.c
	$(call say,CC,$@)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# The compiled shaders and a table of them, for struct shader. Those of FORMAT_SHADERS are compiled for each block format.
FORMAT_SHADERS = $(patsubst shaders/%.comp,%,$(shell grep -l 'include "blocks.glsl"' shaders/*.comp))
BLOCK_FORMATS := $(shell sed -n 's/^ *X.BLOCK_\([A-Z0-9_]*\), .*/\1/p' engine/format/block.h)
# Halves do not hold the weights of F32 and BF16.
SHADERS = $(filter-out $(FORMAT_SHADERS) $(if $(COOPERATIVE),,cooperative), \
		$(patsubst shaders/%.comp,%,$(wildcard shaders/*.comp))) \
	$(filter-out $(if $(COOPERATIVE),widen_F32 widen_BF16,widen_%), \
		$(foreach shader,$(FORMAT_SHADERS),$(BLOCK_FORMATS:%=$(shader)_%)))
SPIRV = $(SHADERS:%=$(BUILD)/shaders/%.spv)
GLSLC = glslc --target-env=vulkan1.2 -O -Werror -Ishaders $(COOPERATIVE:%=-DCOOPERATIVE_%)
# Where spirv-val is installed, it looks at what glslc wrote.
SPIRV_VAL_PATH := $(shell command -v spirv-val)
SPIRV_VAL = $(if $(SPIRV_VAL_PATH),&& spirv-val --target-env vulkan1.2 --scalar-block-layout $(1))

define SHADER_RULE
$(BUILD)/shaders/$(1)_%.spv: shaders/$(1).comp $(wildcard shaders/*.glsl)
	@mkdir -p $$(@D)
	$$(call say,GLSLC,$$@)$$(GLSLC) -DFORMAT_$$* -o $$@.part $$< $$(call SPIRV_VAL,$$@.part) && mv $$@.part $$@
endef
$(foreach shader,$(FORMAT_SHADERS),$(eval $(call SHADER_RULE,$(shader))))

$(BUILD)/shaders/%.spv: shaders/%.comp $(wildcard shaders/*.glsl)
	@mkdir -p $(@D)
	$(call say,GLSLC,$@)$(GLSLC) -o $@.part $< $(call SPIRV_VAL,$@.part) && mv $@.part $@

# What is compiled with or without a library is compiled afresh when that changes.
define WITH_RULE
$(BUILD)/with_$(1): always
	@mkdir -p $$(@D)
	@echo '$$($(1))' | cmp -s - $$@ || echo '$$($(1))' > $$@
$(2:%=$(BUILD)/%.o): $(BUILD)/with_$(1)
$(2:%=$(BUILD)/%.o): ALL_CFLAGS += $$(if $$($(1)),-DCONFAB_$(1) $$($(1)_CFLAGS))
endef
$(eval $(call WITH_RULE,VULKAN,engine/serve/registry tests/unit/engine/vulkan/test_vulkan \
	tests/unit/engine/vulkan/test_matmuls tests/faults/test_vulkan_faults \
	$(basename $(wildcard tests/kernels/*shader*.c))))
$(eval $(call WITH_RULE,COOPERATIVE,engine/vulkan/cooperative))
$(filter $(BUILD)/shaders/cooperative.spv,$(SPIRV)): $(BUILD)/with_COOPERATIVE
$(eval $(call WITH_RULE,BLAS,engine/cpu/kernels_blas tests/kernels/blas_reference))

$(BUILD)/shaders.S: $(SPIRV) shaders/table.sh
	@sh shaders/table.sh $(SPIRV) > $@.part && mv $@.part $@

$(BUILD)/shaders.o: $(BUILD)/shaders.S
	$(call say,AS,$@)$(CC) -c -o $@ $<

# The built-in model between two symbols, without the file an empty place; and its chat template as a string.
GUIDE = $(wildcard app/guide/guide.gguf)
$(BUILD)/guide_data.S: Makefile
	@mkdir -p $(@D)
	@printf '%s\n' '.section .rodata' '.balign 64' '.global guide_begin, guide_end' 'guide_begin:' \
		'$(if $(GUIDE),.incbin "$(GUIDE)")' 'guide_end:' '.global guide_template_text' 'guide_template_text:' \
		'.incbin "app/guide/template.jinja"' '.byte 0' '.section .note.GNU-stack,"",%progbits' > $@

$(BUILD)/guide_data.o: $(BUILD)/guide_data.S $(GUIDE) app/guide/template.jinja
	$(call say,AS,$@)$(CC) -c -o $@ $<

# "q": files of different folders may have the same name.
$(LIBRARY): $(filter-out $(BUILD)/app/main.o,$(OBJECTS)) $(BUILD)/themes.o $(BUILD)/guide_data.o
	@rm -f $@
	$(call say,AR,$@)ar qcs $@ $^

$(BUILD)/%.o: %.c | packages
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) $(if $(filter engine/cpu/% engine/format/% engine/serve/%,$<),-ffp-contract=off) $(ISA_$(lastword $(subst _, ,$(basename $(notdir $<))))) -MMD -MP -c -o $@ $<

# Other files of a folder help every test in it; those of tests/unit help the faults too.
define TEST_RULE
$(BUILD)/tests/$(1)/%: $(BUILD)/tests/$(1)/%.o $(foreach folder,$(2),$(call HELPERS,$(folder))) $(LIBRARY)
	$$(call say,LD,$$@)$$(CC) $$(ALL_LDFLAGS) -o $$@ $$^ $$(LDLIBS) -lcmocka -lvterm
endef
$(eval $(call TEST_RULE,unit,unit))
$(eval $(call TEST_RULE,faults,unit))
$(eval $(call TEST_RULE,peer,peer unit))
$(eval $(call TEST_RULE,kernels,kernels unit))
$(eval $(call TEST_RULE,golden,golden))

# Tests of kernels have OpenBLAS as their reference.
$(BUILD)/tests/kernels/%: LDLIBS += $(BLAS_LIBS)

# The test in which the system grants no more threads and eventfds.
$(BUILD)/tests/faults/test_system_limits: ALL_LDFLAGS += -Wl,--wrap=pthread_create -Wl,--wrap=eventfd

# The test in which encoding a prompt takes as long as it says.
$(BUILD)/tests/unit/engine/serve/test_encoding: LDFLAGS += -Wl,--wrap=prompt_source_encode

# The one test that compares with libsentencepiece, through a helper in C++.
$(BUILD)/tests/unit/sentencepiece_library.o: tests/unit/sentencepiece_library.cc
	@mkdir -p $(@D)
	$(call say,CXX,$<)$(CXX) $(filter-out -std=c17,$(ALL_CFLAGS)) -std=c++17 -MMD -MP -c -o $@ $<

$(BUILD)/tests/unit/engine/format/test_sentencepiece: $(BUILD)/tests/unit/sentencepiece_library.o
$(BUILD)/tests/unit/engine/format/test_sentencepiece: LDLIBS += -lsentencepiece_train -lsentencepiece -lstdc++

# tests/peer compares with llama.cpp, where CONFAB_PEER_DIR names a folder with its headers and libraries; without, it
# skips. What includes the headers is compiled afresh when that changes.
$(BUILD)/tests/peer/peer_dir: always
	@mkdir -p $(@D)
	@echo '$(CONFAB_PEER_DIR)' | cmp -s - $@ || echo '$(CONFAB_PEER_DIR)' > $@
$(BUILD)/tests/peer/peer_tokenizer.o: $(BUILD)/tests/peer/peer_dir
ifneq ($(CONFAB_PEER_DIR),)
PEER_LIBRARIES := $(shell find $(CONFAB_PEER_DIR)/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64 -name 'libllama.*' -o -name 'libggml.*' -o -name libggml-base.so)
$(BUILD)/tests/peer/%: ALL_CFLAGS += -I$(CONFAB_PEER_DIR)/headers/include -I$(CONFAB_PEER_DIR)/headers/ggml/include
$(BUILD)/tests/peer/%: LDLIBS += $(PEER_LIBRARIES) -Wl,-rpath,$(firstword $(dir $(PEER_LIBRARIES)))
endif

$(BUILD)/tests/fuzz/%: $(BUILD)/tests/fuzz/%.o $(call HELPERS,unit) $(LIBRARY)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LDLIBS) -lcmocka

$(BUILD)/tests/fuzz/mutate_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/mutate.o $(call HELPERS,unit) $(LIBRARY)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

# Programs that measuring needs.
$(BUILD)/tests/bench/long_answer: $(addprefix $(BUILD)/tests/,bench/long_answer.o golden/script_engine.o) $(LIBRARY)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o $(addprefix $(BUILD)/tests/unit/,gguf_writer.o tiny_shape_keys.o) $(LIBRARY)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

# ---- packages: pkg-config name and Debian package ----

BUILD_NEEDS = ncursesw:libncurses-dev readline:libreadline-dev libutf8proc:libutf8proc-dev \
	sqlite3:libsqlite3-dev jansson:libjansson-dev md4c:libmd4c-dev libmicrohttpd:libmicrohttpd-dev
TEST_NEEDS  = cmocka:libcmocka-dev vterm:libvterm-dev sentencepiece:libsentencepiece-dev
define missing
$(strip $(shell command -v $(firstword $(CC)) > /dev/null || echo gcc libc6-dev; command -v pkg-config > /dev/null || echo pkg-config; \
	for pair in $(1); do pkg-config --exists $${pair%%:*} 2> /dev/null || echo $${pair#*:}; done))
endef

# Without Vulkan confab computes on the processor only.
VULKAN_MISSING = $(if $(VULKAN),,$(call missing,vulkan:libvulkan-dev) $(shell command -v glslc > /dev/null || echo glslc))
# For its tests: a driver that computes on the processor, and the layers that check how it is used.
VULKAN_TEST_MISSING = $(shell ls /usr/share/vulkan/icd.d/lvp_icd* > /dev/null 2>&1 || echo mesa-vulkan-drivers; \
	ls /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json > /dev/null 2>&1 || echo vulkan-validationlayers; \
	command -v spirv-val > /dev/null || echo spirv-tools)
# What the tests of completions and of examples run.
TOOLS_MISSING  = $(shell for tool in zsh fish curl; do command -v $$tool > /dev/null || echo $$tool; done)
BLAS_MISSING   = $(if $(BLAS),,$(call missing,openblas:libopenblas-dev))

MISSING_CXX = $(shell command -v $(firstword $(CXX)) > /dev/null || echo g++)

BUILD_MISSING = $(call missing,$(BUILD_NEEDS))
TEST_MISSING  = $(strip $(call missing,$(BUILD_NEEDS) $(TEST_NEEDS)) $(MISSING_CXX) $(VULKAN_MISSING) \
	$(VULKAN_TEST_MISSING) $(TOOLS_MISSING) $(BLAS_MISSING))

packages:
	@missing="$(BUILD_MISSING)"; test -z "$$missing" || \
		{ echo "confab needs packages that are missing: $$missing"; echo "\`make deps\` installs them."; exit 1; }

# $(call install,PACKAGES,what for): as root, or where sudo asks for no password; otherwise says what to run.
define install
	@missing="$(1)"; test -z "$$missing" && exit; \
		echo "These packages are missing, which $(2) needs: $$missing"; \
		command -v apt-get > /dev/null || { echo "Please install what these Debian packages contain."; exit 1; }; \
		if test "$$(id -u)" = 0; then sudo=; elif sudo -n true 2> /dev/null; then sudo='sudo -n'; else \
			echo "Please run this, then make again:"; \
			echo "    sudo apt-get install --no-install-recommends $$missing"; exit 1; fi; \
		echo "Installing them with$${sudo:+ sudo and} apt-get."; \
		$$sudo apt-get update -q && \
		$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $$missing
endef

deps: ## install the packages that building and testing need
	$(call install,$(TEST_MISSING),building and testing confab)

build-deps:
	$(call install,$(BUILD_MISSING),building confab)

# ---- what people run ----

run: build-deps ## install what building needs, build, open the chat (MODEL=path: with this model)
	@$(MAKE) --no-print-directory -j$$(nproc) confab
	@./confab $(if $(MODEL),-m '$(MODEL)')

BENCH_MODELS = $(addprefix build/bench/,llama-Q4_0.gguf llama-Q4_K_M.gguf llama-Q8_0.gguf experts-MXFP4.gguf)
bench: confab $(if $(MODEL),,$(BENCH_MODELS)) ## measure speed, memory and accuracy, keep the figures (MODEL=path; RECORD=1: in tests/bench/records too)
	@RECORD=$(RECORD) tests/bench/run.sh $(if $(MODEL),'$(MODEL)',$(BENCH_MODELS))

# Models of random weights to measure with, larger than caches: 1.3 GB, made once.
build/bench/llama-F16.gguf build/bench/experts-F16.gguf: build/bench/%-F16.gguf: | $(BUILD)/tests/bench/write_model
	@mkdir -p $(@D)
	$(call say,WRITE,$@)$(BUILD)/tests/bench/write_model $* $@.part && mv $@.part $@

$(filter build/bench/llama-%,$(BENCH_MODELS)): build/bench/llama-%.gguf: build/bench/llama-F16.gguf | confab
	$(call say,QUANTIZE,$@)./confab quantize --force $< $@ $* > /dev/null

build/bench/experts-MXFP4.gguf: build/bench/experts-F16.gguf | confab
	$(call say,QUANTIZE,$@)./confab quantize --force $< $@ MXFP4 > /dev/null

.INTERMEDIATE: build/bench/llama-F16.gguf build/bench/experts-F16.gguf

# Those that take longest, which run first: so the processors are done at about the same time.
LONGEST = $(addprefix $(BUILD)/tests/,unit/engine/vulkan/test_vulkan unit/engine/cpu/test_cpu_backend \
	unit/app/commands/test_program kernels/test_shader_matmuls unit/engine/cpu/test_attention \
	faults/test_vulkan_faults unit/engine/serve/test_engine_memory unit/engine/model/test_families)

tests: $(TESTS) $(MUTATORS) $(BUILD)/tests/bench/serve_load
	@:

check: deps ## run every test; the last line counts them
	@$(MAKE) --no-print-directory -j$$(nproc) $(BUILD)/confab tests
	@CONFAB=$(BUILD)/confab BUILD=$(BUILD) tests/run.sh $(LONGEST) tests/unit/check_includes.sh \
		$(wildcard tests/server/test_*.sh tests/papers/test_*.sh) $(filter-out $(LONGEST),$(TESTS)) $(MUTATORS)

asan: ## run every test under the address and undefined-behaviour sanitizers
	@$(MAKE) --no-print-directory VARIANT=asan check

tsan: ## run every test under the thread sanitizer
	@TEST_SECONDS=3600 $(MAKE) --no-print-directory VARIANT=tsan check

clang: ## build with clang, without a warning, and run every test
	@$(MAKE) --no-print-directory CC=clang VARIANT=clang check

mutations: ## feed 100,000 changed GGUF files, saved pages and requests, 20,000 of each other input, under the sanitizers
	@$(MAKE) --no-print-directory -j$$(nproc) VARIANT=asan mutators
	@for m in $(MUTATORS:$(BUILD)/%=build/asan/%); do \
		case $$m in */mutate_gguf|*/mutate_hibernate|*/mutate_http|*/mutate_request_json) n=100000;; *) n=20000;; esac; $$m $$n || exit 1; done

mutators: $(MUTATORS)

fuzzers: $(FUERS)

fuzz: ## feed broken input for FU_SECONDS to each fuzzer (needs clang)
	@$(MAKE) --no-print-directory -j$$(nproc) CC=clang VARIANT=fuzz fuzzers
	@for f in $(FUERS:$(BUILD)/%=build/fuzz/%); do \
		mkdir -p build/fuzz/found && $$f -max_total_time=$(FU_SECONDS) -rss_limit_mb=4096 -artifact_prefix=build/fuzz/found/ || exit 1; done

check-long: check clang asan tsan mutations ## check, clang, the sanitizers, 10,000 requests, a million random commands, 100,000 random keys, ten minutes of every fuzzer
	@CONFAB=$(BUILD)/confab BUILD=$(BUILD) LOAD_REQUESTS=10000 tests/server/test_load.sh
	@$(BUILD)/tests/unit/engine/serve/test_scheduler_life 500
	@$(BUILD)/tests/golden/test_random_keys 100000
	@$(MAKE) --no-print-directory FU_SECONDS=600 fuzz

# Debian's python3-torch belongs to Debian's python3.
PYTHON ?= /usr/bin/python3
guide: confab ## train the built-in guide afresh and score it (an hour and a half of two cores with AMX; needs python3-torch)
	cd app/guide && $(PYTHON) train.py --out ../../build/guide.pt && $(PYTHON) export.py ../../build/guide.pt guide.gguf && \
		$(PYTHON) said.py > said.txt && $(PYTHON) curve.py ../../build/guide.pt training.svg
	@$(MAKE) --no-print-directory guide-check

guide-check: confab ## ask the built-in guide what it was not trained on, at temperature 0 and at the default one
	cd app/guide && $(PYTHON) check.py && $(PYTHON) check.py --temperature default

# What is installed, under PREFIX: a file, and where.
ZSH_FUNCTIONS ?= share/zsh/site-functions
INSTALLED = $(BUILD)/confab:bin/confab \
	$(foreach page,$(MANUALS),$(page):share/man/man$(subst .,,$(suffix $(page)))/$(notdir $(page))) \
	packaging/confab.bash:share/bash-completion/completions/confab \
	packaging/_confab:$(ZSH_FUNCTIONS)/_confab \
	packaging/confab.fish:share/fish/vendor_completions.d/confab.fish \
	packaging/confab.desktop:share/applications/confab.desktop

install: $(BUILD)/confab ## install to DESTDIR and PREFIX (/usr/local)
	@for pair in $(INSTALLED); do \
		file=$(DESTDIR)$(PREFIX)/$${pair#*:}; echo "  INSTALL  $$file"; \
		case $$file in */bin/*) mode=755;; *) mode=644;; esac; \
		install -D -m $$mode $${pair%%:*} $$file || exit 1; done

uninstall: ## remove what install put there
	rm -f $(foreach pair,$(INSTALLED),$(DESTDIR)$(PREFIX)/$(lastword $(subst :, ,$(pair))))

deb: $(BUILD)/confab ## make a Debian package, build/confab_VERSION_ARCHITECTURE.deb
	@MAKE='$(MAKE)' packaging/deb.sh

manuals: confab ## make the manual pages afresh from man/*.in and the program's tables
	for page in $(MANUALS); do ./confab help --man $$page.in > $$page.part && mv $$page.part $$page || exit 1; done

picture: confab ## make the picture of README afresh, of a real run (needs tmux and python3)
	python3 man/picture.py

clean: ## remove everything that was built
	rm -rf build confab

help: ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: all always packages deps build-deps run bench tests check clang asan tsan mutations mutators fuzzers fuzz check-long guide guide-check install uninstall deb manuals picture clean help
.PRECIOUS: $(BUILD)/%.o
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
