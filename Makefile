# What is done often. `make` alone lists it.

GO      ?= go
BINARY  := goprof
# go's ./... leaves testdata out, but the tests of all packages stand on these.
PKG     ?= ./... ./testdata/jvmtest ./testdata/ctest ./testdata/host ./testdata/fuzzseed ./testdata/lies ./testdata/oldkernel ./testdata/oracle ./testdata/captured ./testdata/browser ./testdata/corefile ./testdata/hprofread ./testdata/sampletest ./testdata/shipped ./testdata/sources
RUN     ?= .
# How long a test run may last before it counts as hung, and each fuzzer runs.
TIMEOUT ?= 45m
FUZZTIME ?= 20s

# All that is compiled here is compiled in one way, which names no folder: tests, checks and binaries share it in Go's
# cache, and so do other clones.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -trimpath)
# The binary is static: it must run in any container beside any libc. Tests are built as it is, because with C in the
# program Go cannot give up rights in all of its threads.
export CGO_ENABLED := 0

.DEFAULT_GOAL := help
.PHONY: help build test test-languages test-servers test-readers test-engines test-kubernetes test-cluster quick demo picture vet staticcheck fmt bench microbench fuzz nightly cover clean prove \
	test-matrix test-arm64 test-kernels dist dist-verify packages test-packages image

help: ## show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name what; do printf '  make %-12s %s\n' "$$name" "$$what"; done

build: ## the static binary ./goprof
	@GO=$(GO) scripts/build.sh -o $(BINARY)
	@printf 'built ./%s, %s bytes\n' $(BINARY) "$$(wc -c < $(BINARY))"

# These have tests that measure, or that need the CPUs for themselves: they run one at a time (-p 1), after all others.
CALM    := $(addprefix ./sampler/,events guard offcpu osthread perf ptrace stops threads visit wall) ./testdata/oracle
# Of the others these take longest. They begin first, so that at the end none runs on alone.
LONG    := ./cmd/goprof ./vmstructs ./heap ./output/heat ./output/jfr ./output/recording
ALONE    = $(filter $(shell $(GO) list $(CALM)),$(shell $(GO) list $(PKG)))
BESIDE   = $(filter $(shell $(GO) list $(LONG)),$(shell $(GO) list $(PKG))) \
	$(filter-out $(shell $(GO) list $(CALM) $(LONG)),$(shell $(GO) list $(PKG)))

# Tests that begin with t.Parallel mostly wait, and measure nothing that others change: so many run side by side.
# make vet has vetted them.
SIDE     = -parallel 4 -vet=off

test: ## all tests, with real JVMs (installs a JDK and tools, or says what to install)
	@scripts/tools.sh chromium gdb musl-gcc strace
	@scripts/tools.sh podman runc || echo "make test: NOT TRIED: the documentation's commands for containers (TestPodman)" >&2
	@scripts/jdk.sh
	@start=$$(date +%s); status=0; export GOPROF_REQUIRE_JVM=1 GOPROF_REQUIRE_CHROMIUM=1 \
		GOPROF_LOT=$${GOPROF_LOT:-$$(printf %d 0x$$(git rev-parse --short=8 HEAD 2>/dev/null || echo 1))}; \
	echo "make test: GOPROF_LOT=$$GOPROF_LOT"; \
	beside="$(BESIDE)"; [ -z "$$beside" ] || $(GO) test -p 3 $(SIDE) -timeout $(TIMEOUT) -run '$(RUN)' $$beside || status=$$?; \
	alone="$(ALONE)"; [ -z "$$alone" ] || $(GO) test -p 1 $(SIDE) -timeout $(TIMEOUT) -run '$(RUN)' $$alone || status=$$?; \
	echo "make test: $$(( $$(date +%s) - start )) s"; exit $$status

prove: ## the oracles in their long form, some hours (STOPS=, STEPS=, SAMPLES=, CHURN=seconds)
	@scripts/prove.sh $(ORACLE)

quick: ## the tests that need no JVM, no compiler and no browser: about a minute of CPU time
	@$(GO) test -short $(PKG)

test-arm64: ## the tests on a real arm64 kernel with arm64 JVMs, under qemu (STAGES=regexp, STOPS=, STEPS=, JDKS="8 21", ROWS=)
	@scripts/test-arm64.sh $(JDKS)

test-kernels: ## every kind of look on Debian's kernels 5.10, 6.1 and 6.12, under qemu, as root (SUITES="bookworm")
	@scripts/kernels.sh $(SUITES)

dist: ## static binaries for both CPUs and their checksums in build/dist (make dist-verify: the same bytes again, elsewhere)
	@scripts/dist.sh

packages: ## .deb, .rpm, .apk and archives of what make dist has built, in build/packages (GOPROF_SIGNING_KEY=FILE signs)
	@scripts/packages.sh

test-packages: ## installs, upgrades and removes these packages in roots of their own, and records a JVM from there (root)
	@scripts/packages-test.sh

image: ## a container image of these binaries, in OCI's layout, in build/image (needs no daemon)
	@scripts/image.sh

dist-verify:
	@scripts/dist.sh verify

test-matrix: ## every JDK of vmstructs/releases.txt with every collector and mode, an hour or two (STOPS=, JDKS="8 21", ROWS=regexp)
	@scripts/matrix.sh $(JDKS)

test-languages: ## names of real Kotlin, Scala, Groovy and JRuby programs (fetches the compilers; needs Maven, mvn)
	@programs=$$(scripts/languages.sh) && GOPROF_LANGUAGES=$$programs GOPROF_REQUIRE_JVM=1 $(GO) test -count 1 -timeout $(TIMEOUT) -v -run '^TestLanguages$$' ./testdata/oracle

test-servers: ## stacks of virtual threads of servers under load; triage's first line for HikariCP with H2, Tomcat, Spring Boot with OpenTelemetry's agent, Kafka, Helidon and Vert.x in trouble (fetches them; needs Maven, mvn, and a JDK from 21 on)
	@servers=$$(scripts/servers.sh) && GOPROF_SERVERS=$$servers GOPROF_REQUIRE_JVM=1 $(GO) test -count 1 -timeout $(TIMEOUT) -v -run '^Test(Servers|Incidents)$$' ./testdata/oracle

test-readers: ## our files in viewers of others, theirs in ours, and async-profiler beside goprof: JMC, async-profiler, jstall, speedscope, Firefox, jfr of JDK 17, 21 and 25 (fetches them; needs Maven, npm, Chromium)
	@readers=$$(scripts/readers.sh) && GOPROF_READERS=$$readers GOPROF_REQUIRE_JVM=1 $(GO) test -count 1 -timeout $(TIMEOUT) -v -run '^Test(Converter|ConverterHits|JMC|ReadsAsyncProfiler|AgreesWithConverter|ThreadDumpReader|AllocBesideAsync|LeaksBesideAsync|WaitsBesideOthers|Reader)$$' ./output/dumps ./output/jfr ./output/recording ./heap/heapdump ./testdata/oracle
	@viewers=$$(scripts/readers.sh npm) && GOPROF_VIEWERS=$$viewers $(GO) test -count 1 -timeout $(TIMEOUT) -v -run '^Test(Schema|Viewer|Page|MCPClient)$$' ./output/speedscope ./output/firefox ./cmd/goprof
	@jdks=$$(REQUIRE_ALL=1 scripts/jdks.sh 17 21 25) && GOPROF_JDKS=$$jdks GOPROF_REQUIRE_JVM=1 $(GO) test -count 1 -timeout $(TIMEOUT) -v -run '^Test(JDKReadsOurs|JDKReadsHits|ReadsJDK|HotMethods|LiveInJDKTools)$$' ./output/jfr ./output/recording ./cmd/goprof

test-engines: ## what servers of others store of what goprof sends: an OpenTelemetry collector, Pyroscope's service (builds them, in a module of their own)
	@cd testdata/engines && GOFLAGS=-mod=mod env -u CGO_ENABLED $(GO) test -count 1 -timeout $(TIMEOUT) -v .

test-kubernetes: ## the Helm chart, the base for kustomize and the alerts, read by the libraries of Helm, kustomize, Kubernetes and Prometheus (builds them, in a module of their own)
	@cd testdata/kubernetes && GOFLAGS=-mod=mod $(GO) test -count 1 -timeout $(TIMEOUT) .

test-cluster: ## the agent and the plugin of kubectl in a real Kubernetes of one node (builds it, in a module of its own; root)
	@scripts/tools.sh runc cni && cd testdata/cluster && GOFLAGS=-mod=mod unshare --pid --fork --kill-child --mount-proc $(GO) test -count 1 -timeout $(TIMEOUT) -v .

demo: ## build, start a sample JVM with every kind of frame, record it, draw it
	@scripts/demo.sh

picture: ## docs/demo.png: the page of make demo, as a browser shows it
	@scripts/picture.sh

vet: ## go vet
	@$(GO) vet $(PKG)

staticcheck: ## staticcheck, in the version that go.mod names
	@$(GO) tool staticcheck $(PKG)

fmt: ## list the files that gofmt would change; fails if there are any
	@files=$$(git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 -r gofmt -l); \
	if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi

bench: build ## goprof's pauses and cost, beside a C loop, JFR and async-profiler (half an hour; BENCH="-rounds 5 -sections pauses", GOPROF_ASYNC=path)
	@scripts/tools.sh
	@java=$$(scripts/jdk.sh) && $(GO) run ./scripts/bench -goprof ./$(BINARY) -java "$$java" $(BENCH)

microbench: ## all benchmarks of Go functions
	@$(GO) test -run '^$$' -bench . -benchmem -timeout $(TIMEOUT) $(PKG)

fuzz: ## each fuzzer for FUZZTIME (20s)
	@scripts/fuzz.sh $(FUZZTIME)

nightly: ## the race detector, known vulnerabilities, every fuzzer for FUZZTIME, the oracles (NIGHTLY="race fuzz")
	@FUZZTIME=$(FUZZTIME) scripts/nightly.sh $(NIGHTLY)

cover: ## test coverage by function, as ./build/cover.html
	@mkdir -p build
	@$(GO) test -p 1 -timeout $(TIMEOUT) -coverpkg=./... -coverprofile=build/cover.out $(PKG)
	@$(GO) tool cover -html=build/cover.out -o build/cover.html
	@$(GO) tool cover -func=build/cover.out | tail -1

clean: ## remove what was built
	@rm -rf $(BINARY) build
