# `make demo` on a machine with Python 3.11 or newer (venv, pip); everything else is set up in .venv.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

# CUDA's libraries, 2 GB of them, where NVIDIA's driver is loaded; `make demo GPU=` does without. `GPU=none` takes the ONNX
# Runtime that knows no GPU, and is 260 MB smaller.
GPU ?= $(if $(wildcard /proc/driver/nvidia/version /dev/dxg),cuda)

COMMA := ,

# The requirements of pyproject.toml, with the other ONNX Runtime: pip cannot leave out one of a package's own.
define SMALL
import tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
for one in project["dependencies"] + project["optional-dependencies"]["serve"]:
    print(one.replace("onnxruntime-gpu", "onnxruntime"))
endef
export SMALL

PIP := $(BIN)/pip install --quiet --disable-pip-version-check

.PHONY: demo setup dev lint quick test lab compat check format reference prove bench clean

DEMO_ARGS ?=
demo: setup
	$(BIN)/camgraph demo $(DEMO_ARGS)

setup: $(VENV)/.ready
dev: $(VENV)/.ready-dev

# Debian's python3 comes without venv, and says so in many lines only after it has made half of one.
$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo \
	  "$(PYTHON) is not Python 3.11 or newer with venv and pip: apt install python3-venv, or name another: make PYTHON=..."; \
	  exit 1; }
	@echo "setting up $(VENV) with pip, once: a minute or two, by your network"
	$(PYTHON) -m venv $(VENV)
ifeq ($(GPU),none)
	$(BIN)/python -c "$$SMALL" > $(VENV)/small.txt
	$(PIP) -r $(VENV)/small.txt
	$(PIP) --no-deps -e .
else
	$(PIP) -e '.[serve$(if $(GPU),$(COMMA)$(GPU))]'
endif
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready tests/plugin/pyproject.toml
	$(PIP) --config-settings editable_mode=compat -e '.[dev]' -e tests/plugin
	touch $@

# Tests pull what they need; those that want other data read CAMGRAPH_TEST_DATA and say by name that they were skipped.
# Many of them start processes and wait: four at a time, also on two cores. A file's tests stay together until another
# worker is idle.
TEST_JOBS ?= 4
PYTEST    := -m pytest -n $(TEST_JOBS) --dist worksteal
test: dev
	$(BIN)/camgraph assets pull
	$(BIN)/camgraph assets pull movenet-lightning.onnx movenet-thunder.onnx
	$(BIN)/python $(PYTEST) -m "not lab" --durations 40

# Whether what measures and proves still works: all tests of tools/lab, of which `make test` runs a sample
# (tests/tools/lab/conftest.py). Then those elsewhere that take long and fail seldom: faults, kills, quantised models.
lab: dev
	$(BIN)/camgraph assets pull
	$(BIN)/python $(PYTEST) tests/tools/lab
	$(BIN)/python $(PYTEST) -m lab --ignore tests/tools/lab

# The other Pythons that are declared, where they can be had (on the PATH, or by pyenv).
OTHER_PYTHONS ?= 3.12 3.13
OTHER_TESTS   ?= tests/stages tests/pipeline
compat: dev
	$(BIN)/camgraph assets pull
	@set -e; for version in $(OTHER_PYTHONS); do found=; \
	  for python in python$$version "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$version.*/bin/python; do \
	    if "$$python" -c 'import venv' 2>/dev/null; then found=$$python; fi; \
	  done; \
	  if [ -z "$$found" ]; then echo "Python $$version is not here: not tested"; continue; fi; \
	  $(MAKE) --no-print-directory dev PYTHON="$$found" VENV=$(VENV)-$$version; \
	  $(VENV)-$$version/bin/python -VV; \
	  $(VENV)-$$version/bin/python $(PYTEST) -q $(OTHER_TESTS); \
	done

check: lint
	$(MAKE) test

lint: dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Less than a minute of two quiet cores: no test that starts a process (tests/plugin/camgraph_test_stages/process_starts.py),
# none that is marked as slow, and a few examples of each property (tests/conftest.py). Nobody waits in these tests: as many
# at a time as there are cores.
quick: lint
	$(BIN)/camgraph assets pull
	$(BIN)/python -m pytest -n auto --dist worksteal -q -m "not processes and not slow and not lab"

format: dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The pages of docs/reference, from the definitions in the code.
reference: dev
	$(BIN)/python -m camgraph.tools.lab.reference

# The full matrix, faults, kills, two soaks: each writes its page, between marks, whatever came out. Almost two hours,
# on a machine that does nothing else. One that is not all proven does not keep the next from being tried, and fails the whole.
prove: dev
	$(BIN)/camgraph assets pull
	@failed=; \
	$(BIN)/python -m camgraph.tools.lab.proofs.prove --report docs/proof.md || failed="$$failed prove"; \
	$(BIN)/python -m camgraph.tools.lab.proofs.fuzz_check --report docs/proof.md || failed="$$failed fuzz_check"; \
	$(BIN)/python -m camgraph.tools.lab.proofs.fuzz_rules --report docs/proof.md || failed="$$failed fuzz_rules"; \
	$(BIN)/python -m camgraph.tools.lab.proofs.fuzz_stores --report docs/proof.md || failed="$$failed fuzz_stores"; \
	$(PIP) -e '.[fuzz]'; \
	$(BIN)/python -m camgraph.tools.lab.proofs.fuzz_service --report docs/proof.md || failed="$$failed fuzz_service"; \
	$(BIN)/python -m camgraph.tools.lab.proofs.stuck_model --report docs/proof.md || failed="$$failed stuck_model"; \
	$(BIN)/python -m camgraph.tools.lab.proofs.published_models --report docs/models.md || failed="$$failed published_models"; \
	$(BIN)/python -m camgraph.tools.lab.proofs.mutants --report docs/proof.md || failed="$$failed mutants"; \
	$(BIN)/python -m camgraph.tools.lab.proofs.outage --report docs/proof.md || failed="$$failed outage"; \
	$(BIN)/python -m camgraph.tools.lab.proofs.live_faults --rounds 2 --report docs/live_faults.md || failed="$$failed live_faults"; \
	$(BIN)/python -m camgraph.tools.lab.proofs.live_kills --report docs/live_kills.md || failed="$$failed live_kills"; \
	$(BIN)/python -m camgraph.tools.lab.proofs.footage_kills --report docs/footage_kills.md || failed="$$failed footage_kills"; \
	$(BIN)/python -m camgraph.tools.lab.proofs.soak --report docs/soak.md || failed="$$failed soak"; \
	$(BIN)/python -m camgraph.tools.lab.proofs.soak --undisturbed --report docs/soak.md || failed="$$failed undisturbed"; \
	if [ -n "$$failed" ]; then echo "not all is proven:$$failed"; exit 1; fi

# The whole graph against the bare loop, beside others who do the same, how cost grows, how fresh live frames are, from the
# light to the event, many cameras on few cores, the service and those who ask it: each writes its page, between marks. An
# hour; the first time, peers are installed.
bench: dev
	$(BIN)/camgraph assets pull
	$(BIN)/python -m camgraph.tools.lab.benchmarks.graph --report docs/benchmarks.md
	$(BIN)/python -m camgraph.tools.lab.benchmarks.runtime --report docs/benchmarks.md
	$(BIN)/python -m camgraph.tools.lab.benchmarks.sinks --report docs/benchmarks.md
	$(BIN)/python -m camgraph.tools.lab.benchmarks.delivery_age --report docs/benchmarks.md
	$(BIN)/python -m camgraph.tools.lab.benchmarks.peers --report docs/benchmarks.md --json docs/peers.json --plot docs/pictures/peers.png
	$(BIN)/python -m camgraph.tools.lab.benchmarks.cost_curves --report docs/benchmarks.md
	$(BIN)/python -m camgraph.tools.lab.benchmarks.footage --report docs/footage.md
	$(BIN)/python -m camgraph.tools.lab.benchmarks.live --report docs/live.md
	$(BIN)/python -m camgraph.tools.lab.benchmarks.parser_delay --report docs/latency.md
	$(BIN)/python -m camgraph.tools.lab.benchmarks.latency --report docs/latency.md
	$(BIN)/python -m camgraph.tools.lab.benchmarks.cameras --report docs/many_cameras.md
	$(BIN)/python -m camgraph.tools.lab.benchmarks.plan --report docs/plan.md
	$(BIN)/python -m camgraph.tools.lab.benchmarks.service --report docs/service.md
	$(BIN)/python -m camgraph.tools.lab.benchmarks.asked_model --report docs/service.md
	$(BIN)/python -m camgraph.tools.lab.benchmarks.live_pictures --report docs/service.md
	$(BIN)/python -m camgraph.tools.lab.benchmarks.traces --report docs/traces.md

clean:
	rm -rf $(VENV) $(VENV)-3.* out
