# syntax=docker/dockerfile:1

# Build: install from the lock, and compile every kernel into a cache that the image carries.
FROM python:3.11-slim AS build

ENV PATH=/opt/venv/bin:$PATH \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    NUMBA_CACHE_DIR=/var/cache/tagsmith

RUN python -m venv /opt/venv
WORKDIR /opt/tagsmith
COPY requirements.txt requirements-otel.txt ./
# With what tracing needs: docker build --build-arg OTEL=yes .
ARG OTEL=""
RUN pip install --require-hashes --only-binary :all: -r requirements.txt ${OTEL:+-r requirements-otel.txt}

COPY pyproject.toml setup.py requirements.in requirements-server.in requirements-otel.in README.md LICENSE ./
COPY migrations migrations
COPY core core
COPY worker worker
COPY app app
COPY tagsmith tagsmith
# Which commit this is: docker build --build-arg REVISION=$(git rev-parse --short=12 HEAD) .
ARG REVISION=""
# The cache knows a source by its time of change, and layers keep whole seconds only: set one that survives.
RUN printf '%s' "$REVISION" > core/REVISION \
    && pip install --no-deps --no-build-isolation -e . \
    && find . -exec touch -h -d 2000-01-01T00:00:00Z {} + \
    && python -m compileall -q app core migrations tagsmith worker \
    && tagsmith warm

# Run: no compiler, no pip cache, no root.
FROM python:3.11-slim

LABEL org.opencontainers.image.title="tagsmith" \
      org.opencontainers.image.description="Trains sequence taggers and serves them" \
      org.opencontainers.image.licenses="Apache-2.0"

RUN groupadd --gid 10001 tagsmith \
    && useradd --uid 10001 --gid tagsmith --no-create-home --home-dir /var/lib/tagsmith --shell /usr/sbin/nologin tagsmith \
    && install -d -o tagsmith -g tagsmith -m 0700 /var/lib/tagsmith /var/lib/tagsmith-kernels

COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/tagsmith /opt/tagsmith
# Owned by the user: on another model of processor than the builder's the kernels are compiled again at the start. On a
# read-only file system, set NUMBA_CACHE_DIR to a volume with a copy of this directory: Numba does not use a cache that it
# cannot write to. docker-compose.yml does so.
COPY --from=build --chown=tagsmith:tagsmith /var/cache/tagsmith /var/cache/tagsmith

ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    NUMBA_CACHE_DIR=/var/cache/tagsmith \
    TAGSMITH_HOST=0.0.0.0 \
    TAGSMITH_PORT=8765 \
    TAGSMITH_DATA_DIR=/var/lib/tagsmith

USER 10001:10001
WORKDIR /var/lib/tagsmith
VOLUME /var/lib/tagsmith
EXPOSE 8765
STOPSIGNAL SIGTERM

# The start period covers a recompilation on a processor the image was not built on.
HEALTHCHECK --interval=10s --timeout=5s --start-period=180s --retries=3 CMD ["tagsmith", "health"]

ENTRYPOINT ["tagsmith"]
# The whole stack in one container; docker-compose.yml runs the parts apart.
CMD ["up"]
