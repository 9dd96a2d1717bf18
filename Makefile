# Bezel. `make` prints what there is to do; README says the rest.

CC      ?= cc
BUILD   ?= build
OPT     ?= -O3
WARN     = -Wall -Wextra -Werror -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
           -Wmissing-prototypes -Wimplicit-fallthrough -Wvla
# -ffp-contract=off: a block decodes to the same bits with every compiler.
CFLAGS   = -std=c11 $(OPT) -g -D_GNU_SOURCE -ffp-contract=off $(WARN) -Iinclude -Isrc -I$(GEN) \
           $(EXTRA)
LDLIBS   = -lm -lpthread
# Sums of the fast CPU path may use fused multiply-add; gcc's note on vector arguments is not for
# us.
$(BUILD)/src/ops/ops_cpu_fast.o $(BUILD)/src/ops/ops_cpu_dot.o: CFLAGS += -ffp-contract=fast \
    $(if $(filter gcc cc,$(notdir $(CC))),-Wno-psabi)

LIB_SRC  = $(sort $(wildcard src/*.c src/base/*.c src/io/*.c src/text/*.c src/grammar/*.c \
           src/quant/*.c src/ops/*.c src/tape/*.c src/model/*.c src/train/*.c src/gpu/*.c))
CLI_SRC  = $(sort $(wildcard src/cli/*.c))
TEST_SRC = $(sort $(wildcard tests/test_*.c))
FUZZ_SRC = $(sort $(wildcard tests/fuzz/fuzz_*.c))
# What tools/kernels.py makes of kernels/, once for all builds.
GEN      = build/gen
LIB_OBJ  = $(LIB_SRC:%.c=$(BUILD)/%.o) $(BUILD)/gen/kernels.o
CLI_OBJ  = $(CLI_SRC:%.c=$(BUILD)/%.o)
TOOL_OBJ = $(filter-out $(BUILD)/src/cli/main.o,$(CLI_OBJ))
TESTS    = $(TEST_SRC:tests/%.c=$(BUILD)/tests/%)
C_FILES  = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h' 2>/dev/null)
FUZZ_SECONDS ?= 60

.PHONY: help all run chat test check lint format asan fuzz fuzzers bench clean
.SECONDARY:
# A module that fails its check does not stay.
.DELETE_ON_ERROR:

help:
	@echo "make run      install what is missing, build, start the server and open the page"
	@echo "make chat     the same for a chat in the terminal; MODEL=gemma4:e2b chooses a model" \
	    "for either"
	@echo "make test     install what is missing, build, and run every test"
	@echo "make check    the native tests alone; make check-web: the wasm module and the GPU"
	@echo "make all      build only: $(BUILD)/bezel and $(BUILD)/libbezel.a"
	@echo "make lint     formatting, include directions, warnings with clang (gcc builds the rest)"
	@echo "make format   let clang-format rewrite the C files"
	@echo "make asan     every test under AddressSanitizer and UBSan"
	@echo "make fuzz     each fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)"
	@echo "make wasm     the engine for the browser: $(BUILD)/wasm/bezel.wasm"
	@echo "make web      the npm package around it: web/engine"
	@echo "make app      the page: web/app; make screenshots: pictures of its views"
	@echo "make bench    the measurements of docs/PERFORMANCE.md that run on this machine"
	@echo "make clean    remove $(BUILD)/"

all: $(BUILD)/bezel


$(BUILD)/%.o: %.c | $(GEN)/kernels.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/gen/kernels.o: $(GEN)/kernels.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c $< -o $@

$(BUILD)/libbezel.a: $(LIB_OBJ) Makefile
	@rm -f $@
	$(AR) rcs $@ $(LIB_OBJ)

$(BUILD)/bezel: $(CLI_OBJ) $(BUILD)/libbezel.a
	$(CC) $(CFLAGS) $^ $(LDLIBS) -o $@

$(BUILD)/tests/%: tests/%.c tests/check.h $(TOOL_OBJ) $(BUILD)/libbezel.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Itests -MMD -MP $< $(TOOL_OBJ) $(BUILD)/libbezel.a $(LDLIBS) -o $@

$(BUILD)/bench/%: bench/%.c $(TOOL_OBJ) $(BUILD)/libbezel.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP $< $(TOOL_OBJ) $(BUILD)/libbezel.a $(LDLIBS) -o $@

# The page and the server behind it. MODEL=gemma4:e2b or a file is loaded at once; ARGS are options
# of `bezel serve`.
run:
	@tools/setup.sh run
	@$(MAKE) --no-print-directory web app
	@node $(ENGINE)/bin/bezel.mjs serve --open $(if $(MODEL),--model '$(MODEL)') $(ARGS)

# Talk in the terminal, to the model that ships with the repository unless MODEL names another.
chat:
	@tools/setup.sh chat
	@$(MAKE) --no-print-directory all
	@$(BUILD)/bezel chat $(or $(MODEL),models/tiny.q8_0.gguf)

# Everything that CI checks, in the order in which a mistake is cheapest to find. Builds use every
# core, and so do the tests (tests/lanes.sh). What npm installs and bundles takes one core each, so
# it is built beside the C.
PARALLEL = $(MAKE) --no-print-directory -j$(or $(shell nproc 2> /dev/null),1)
test:
	@tools/setup.sh test
	@$(PARALLEL) lint
	@$(PARALLEL) built
	@$(PARALLEL) check
	@$(PARALLEL) check-web
	@$(PARALLEL) asan
	@$(PARALLEL) fuzz \
	    FUZZ_SECONDS=$(if $(filter command line,$(origin FUZZ_SECONDS)),$(FUZZ_SECONDS),5)
	@tail -n 1 $(BUILD)/tmp/summary # the tests' own count, where a reader of the log looks for it

# The tests alone, without setup, lint and sanitizers: the quick round while working.
check: $(TESTS) $(BUILD)/bezel
	@tests/run.sh $(BUILD)

lint:
	@tools/lint.py
	@clang-format-19 --dry-run --Werror $(C_FILES) && echo "clang-format: clean"
	@$(MAKE) --no-print-directory -s CC=clang-19 BUILD=$(BUILD)/clang OPT=-O0 all && \
	    echo "clang-19: no warnings"

format:
	clang-format-19 -i $(C_FILES)

SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
asan:
	@echo "every test under AddressSanitizer and UBSan:"
	@$(MAKE) --no-print-directory -s CC=clang-19 BUILD=$(BUILD)/asan OPT=-O1 EXTRA="$(SANITIZE)" check

# Fuzz targets link an instrumented library of their own; those of the page run in Node. New
# findings land in build/fuzzing/fuzz/.
FUZZERS = $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/fuzz/%)
$(BUILD)/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(wildcard tests/fuzz/*.h) $(LIB_OBJ) $(TOOL_OBJ)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Itests -fsanitize=fuzzer $< $(LIB_OBJ) $(TOOL_OBJ) $(LDLIBS) -o $@

fuzzers: $(FUZZERS)

fuzz: web web/app/node_modules/.package-lock.json
	@$(MAKE) --no-print-directory -s CC=clang-19 BUILD=$(BUILD)/fuzzing OPT=-O1 \
	    EXTRA="$(SANITIZE) -fsanitize=fuzzer-no-link" fuzzers
	@tests/fuzz/run.sh $(BUILD)/fuzzing/fuzz $(FUZZ_SECONDS)

bench: all $(BUILD)/bench/tokenizer
	@bench/run.sh $(BUILD)

# ---- wasm ----
# The core as one WebAssembly module for every host, and the npm package around it. No system calls:
# what needs files stays out, and the C library's few wishes are answered by src/wasm/libc_stubs.c.

WASM_CC  ?= clang-19
WASM_OUT  = $(BUILD)/wasm
WASM_NO   = src/bezel_file.c src/io/source_file.c src/io/ollama.c src/io/ollama_disk.c \
            src/io/ollama_change.c src/io/locate.c \
            src/io/gguf_write_file.c \
            src/io/gguf_file.c src/io/adapter_file.c src/io/part_file.c src/io/file_guard.c \
            src/base/seed.c src/plan.c src/gpu/null_host.c
WASM_CLI  = src/cli/inspect.c src/cli/inspect_json.c src/cli/inspect_text.c src/cli/quant_mix.c
WASM_SRC  = $(sort $(filter-out $(WASM_NO),$(LIB_SRC)) $(wildcard src/wasm/*.c) $(WASM_CLI))
WASM_OBJ  = $(WASM_SRC:%.c=$(WASM_OUT)/obj/%.o) $(WASM_OUT)/obj/gen/kernels.o \
            $(WASM_OUT)/obj/gen/boundary.o
# SIMD, bulk memory, sign extension and saturating conversions are in every browser that has WebGPU.
WASM_CFLAGS = --target=wasm32-wasi -std=c11 -O3 -msimd128 -mbulk-memory -msign-ext \
            -mnontrapping-fptoint -DBZ_NO_THREADS -DNDEBUG -D_GNU_SOURCE -ffp-contract=off \
            $(WARN) -Iinclude -Isrc -I$(GEN)
# What is called seldom, or only records what the device will do, is made small: 37 KB of what a
# page downloads. Smallest is what has no loop over a model's numbers or a long text. -O2 is for
# what -O3 makes larger and no faster; docs/experiments/cpu.md has the figures.
WASM_O2 = $(addprefix $(WASM_OUT)/obj/src/,ops/ops_cpu_bwd.o ops/ops_cpu_dot.o quant/%.o)
$(WASM_OUT)/obj/src/quant/%.o: WASM_CFLAGS += -fno-unroll-loops
WASM_SMALL = $(addprefix $(WASM_OUT)/obj/src/,io/%.o text/tokenizer.o text/detok.o text/stop.o \
            text/marked.o text/sampler.o text/tokenizer_merges.o gpu/upload.o gpu/wgsl.o \
            gpu/selftest.o ops/ops_cpu.o ops/ops_cpu_canvas.o ops/ops_cpu_optional.o \
            ops/ops_cpu_bwd_experts.o base/mem.o base/str.o base/strmap.o base/utf8.o)
WASM_SMALLEST = $(addprefix $(WASM_OUT)/obj/src/,cli/%.o wasm/%.o train/%.o model/%.o tape/%.o \
            gpu/adapt.o gpu/draw.o gpu/fuse.o gpu/fuse_%.o gpu/kernel.o gpu/ops_%.o gpu/plan.o \
            gpu/profile.o gpu/record.o gpu/selftest_%.o io/adapter.o io/adapter_%.o io/gguf_part.o \
            io/gguf_place.o io/gguf_write.o io/pattern.o io/safetensors.o ops/ops.o ops/ops_bwd.o \
            ops/ops_optional.o text/chat_%.o text/tags.o base/json.o bezel.o session.o \
            generate.o constrained.o diffuse.o step.o grammar/%.o)
$(WASM_O2): WASM_CFLAGS += -O2
$(WASM_SMALL): WASM_CFLAGS += -Os
$(WASM_SMALLEST): WASM_CFLAGS += -Oz
# The stack lies below everything else, so that an overflow traps instead of overwriting.
# Compressed relocations: an index takes as many bytes as it needs, not five.
WASM_LDFLAGS = --target=wasm32-wasi -mexec-model=reactor -fuse-ld=lld -Wl,--strip-all \
            -Wl,--compress-relocations \
            -Wl,--stack-first -Wl,-z,stack-size=262144

.PHONY: wasm web built check-web

wasm: $(WASM_OUT)/bezel.wasm

# The npm package `bezel`: TypeScript compiled, the module and later kernels beside it.
ENGINE    = web/engine
BOUNDARY_TS = $(ENGINE)/src/engine/boundary.ts
ENGINE_TS = $(wildcard $(ENGINE)/src/*.ts $(ENGINE)/src/*/*.ts) $(BOUNDARY_TS)

# Sources of kernels that text does without.
LATER = train.wgsl canvas.wgsl

web: $(ENGINE)/dist/index.js $(ENGINE)/dist/bezel.wasm $(LATER:%=$(ENGINE)/dist/%)

$(ENGINE)/node_modules/.package-lock.json: $(ENGINE)/package.json $(ENGINE)/package-lock.json
	cd $(ENGINE) && npm ci --silent
	@touch $@

# What was compiled from a file that has moved or gone does not stay: the package is all of dist/.
# Comments are in the declarations, which editors show, and not in the scripts.
$(ENGINE)/dist/index.js: $(ENGINE_TS) $(ENGINE)/tsconfig.json $(ENGINE)/finish.mjs \
        $(ENGINE)/node_modules/.package-lock.json
	@rm -f $(ENGINE)/dist/*.js $(ENGINE)/dist/*.d.ts $(ENGINE)/dist/*/*.js $(ENGINE)/dist/*/*.d.ts
	cd $(ENGINE) && npx --no-install tsc -p . --emitDeclarationOnly
	@cd $(ENGINE) && npx --no-install tsc -p . --noCheck --declaration false --removeComments
	@cd $(ENGINE) && node finish.mjs
	@touch $@

$(ENGINE)/dist/bezel.wasm: $(WASM_OUT)/bezel.wasm
	@mkdir -p $(@D)
	cp $< $@

$(ENGINE)/dist/%.wgsl: $(GEN)/%.wgsl
	@mkdir -p $(@D)
	cp $< $@

# The page: web/app/dist, which the server finds beside the package.
APP     = web/app
APP_SRC = $(shell find $(APP)/src $(APP)/public -type f 2>/dev/null) \
          $(wildcard $(APP)/*.ts $(APP)/*.json $(APP)/*.html)

.PHONY: app screenshots
app: $(APP)/dist/index.html

$(APP)/node_modules/.package-lock.json: $(APP)/package.json $(APP)/package-lock.json
	cd $(APP) && npm ci --silent
	@touch $@

$(APP)/dist/index.html: $(APP_SRC) $(APP)/node_modules/.package-lock.json \
        $(ENGINE)/dist/index.js $(ENGINE)/dist/bezel.wasm $(LATER:%=$(ENGINE)/dist/%) \
        $(ENGINE)/licenses.txt $(APP)/licenses.txt models/tiny.q8_0.gguf
	cd $(APP) && npm run --silent build

# Pictures of every view, light and dark, wide and phone.
screenshots: app
	@node tests/web/app/screenshots.mjs $(BUILD)/screenshots

# `make -B build/gen/kernels.c KERNEL_NAMES=long` keeps the names of kernels/.
KERNEL_FILES = $(wildcard kernels/*/*.wgsl)
$(GEN)/kernels.h $(GEN)/kernels.c $(LATER:%=$(GEN)/%) $(GEN)/kernels.json $(GEN)/names.json &: \
        tools/kernels.py tools/wgsl.py tools/wgsl_bytes.py tools/wgsl_names.py src/gpu/wgsl.c \
        $(KERNEL_FILES)
	@tools/kernels.py kernels $(GEN) $(KERNEL_NAMES)

# What crosses between the module and its host, for C and for TypeScript: from a table and the
# headers that it names.
$(GEN)/boundary.h $(GEN)/boundary.c $(BOUNDARY_TS) &: tools/boundary.py src/wasm/boundary.def \
    $(wildcard src/*.h src/*/*.h include/*.h)
	@tools/boundary.py $(GEN) $(BOUNDARY_TS)

$(WASM_OUT)/obj/gen/boundary.o: $(GEN)/boundary.c | $(GEN)/kernels.h
	@mkdir -p $(@D)
	$(WASM_CC) $(WASM_CFLAGS) -c $< -o $@

$(WASM_OUT)/obj/gen/kernels.o: $(GEN)/kernels.c
	@mkdir -p $(@D)
	$(WASM_CC) $(WASM_CFLAGS) -DKERNELS_OF_TEXT -c $< -o $@

$(WASM_OUT)/obj/%.o: %.c | $(GEN)/kernels.h $(GEN)/boundary.h
	@mkdir -p $(@D)
	$(WASM_CC) $(WASM_CFLAGS) -MMD -MP -c $< -o $@

$(WASM_OUT)/bezel.wasm: $(WASM_OBJ) $(LATER:%=$(GEN)/%) tools/check_wasm.py
	$(WASM_CC) $(WASM_LDFLAGS) $(WASM_OBJ) -o $@
	@tools/check_wasm.py $@ $(LATER:%=$(GEN)/%)

# The same module with the op table of the tests in it, for tests/web/test_ops.mjs.
$(WASM_OUT)/obj/tests/%.o: WASM_CFLAGS += -Itests
$(WASM_OUT)/ops_test.wasm: $(WASM_OBJ) $(WASM_OUT)/obj/tests/web/ops_test.o
	$(WASM_CC) $(WASM_LDFLAGS) $^ -o $@

# Clients of others that the server is tested with.
tests/web/node_modules/.package-lock.json: tests/web/package.json tests/web/package-lock.json
	cd tests/web && npm ci --silent
	@touch $@

# What check and check-web need. The page comes first, since it is made of the longest chain of
# steps.
WEB_TESTED = app all web $(WASM_OUT)/ops_test.wasm tests/web/node_modules/.package-lock.json
built: $(WEB_TESTED) $(TESTS)

# Everything that needs the module: the Node tool, and the GPU in Node, Deno and Chromium.
check-web: $(WEB_TESTED)
	@tests/web/run.sh $(BUILD)

-include $(WASM_OBJ:.o=.d) $(WASM_OUT)/obj/tests/web/ops_test.d

clean:
	rm -rf $(BUILD)

-include $(wildcard $(BUILD)/src/*/*.d $(BUILD)/src/*.d $(BUILD)/tests/*.d)
