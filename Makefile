# Placeholder targets until scripts/ is in place.
test:
	cmake --preset release && cmake --build --preset release && ctest --preset release
.PHONY: test
