# Everything is built into .venv; the two commands a newcomer needs are `make demo` and `make test`. What takes long,
# more seeds and thorough laws, is tested by `make test-all`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all lint types unit docs vendor clean

demo: .venv/.installed
	$(BIN)/graphbam infer src/graphbam/tables/data/sachs.csv.gz -o out/demo
	@echo && echo "A simulated table, to compare with its true graph in out/world/world.png:"
	$(BIN)/graphbam simulate --n-variables 12 --n-samples 500 --degree 3 --seed 1 -o out/world
	$(BIN)/graphbam infer out/world/data.csv -o out/world/answer

test: lint types unit

lint: .venv/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.installed
	$(BIN)/mypy

unit: .venv/.installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest

docs: .venv/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open out/site/index.html"

test-all: lint types
	GRAPHBAM_TEST_ALL=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "long or not long"

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[plot,dev]"
	touch $@

# The libraries that the report carries; they are committed, with their licences, so that nothing else needs npm.
VENDOR := src/graphbam/output/vendor
vendor:
	rm -rf build/npm && mkdir -p build/npm
	cd build/npm && npm pack --silent cytoscape@3.34.4 @dagrejs/dagre@3.1.1 && for f in *.tgz; do mkdir "$${f%%-[0-9]*}" && tar xzf "$$f" -C "$${f%%-[0-9]*}"; done
	cp build/npm/cytoscape/package/dist/cytoscape.min.js $(VENDOR)/
	cp build/npm/cytoscape/package/LICENSE $(VENDOR)/cytoscape.LICENSE.txt
	grep -v '^//# sourceMappingURL' build/npm/dagrejs-dagre/package/dist/dagre.min.js > $(VENDOR)/dagre.min.js
	cp build/npm/dagrejs-dagre/package/LICENSE $(VENDOR)/dagre.LICENSE.txt

clean:
	rm -rf .venv out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
