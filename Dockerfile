# bursar's image: docker build -t bursar .
#
# Three stages: `runtime` is the final image less the binary, `build` compiles (dependencies in a layer of their own, which a change
# of bursar's source leaves alone), and the last one puts the binary in. BUILDER and RUNTIME may name mirrors of the
# same images; RUNTIME has to be a Debian with bash, which the health check is written in.
ARG BUILDER=rust:1.95-bookworm
ARG RUNTIME=debian:bookworm-slim

FROM ${RUNTIME} AS runtime
# The authorities for TLS to etcd, PostgreSQL and receivers.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 10001 bursar \
    && useradd --system --uid 10001 --gid bursar --home-dir /var/lib/bursar --create-home --shell /usr/sbin/nologin bursar
COPY deploy/healthcheck /usr/local/bin/healthcheck
ENV BURSAR_CONFIG=/etc/bursar/production.toml
WORKDIR /var/lib/bursar
USER 10001:10001
EXPOSE 9464
# Whether the process lives, not whether it could lead: a replica whose store is away is not to be restarted.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 CMD ["/usr/local/bin/healthcheck"]
# SIGTERM: hand over, drain, exit 0. Give it coordinator.drain and a few seconds (docker stop -t 30).
STOPSIGNAL SIGTERM
# The binary itself is process 1: no shell is between it and the signals, and it waits for processes that lost their parent.
ENTRYPOINT ["/usr/local/bin/bursar"]
CMD ["run"]

FROM ${BUILDER} AS build
# protoc, with which the etcd client is generated.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends protobuf-compiler libprotobuf-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /bursar
COPY Cargo.toml Cargo.lock ./
# Everything that is not ours, compiled for an empty program.
RUN mkdir -p src tests/it \
    && echo 'fn main() {}' >src/main.rs \
    && touch src/lib.rs tests/it/main.rs \
    && cargo build --release --locked --bin bursar \
    && rm -r src target/release/bursar target/release/deps/*bursar* target/release/.fingerprint/bursar-*
COPY migrations migrations
COPY config config
COPY src src
RUN cargo build --release --locked --bin bursar

FROM runtime
COPY --from=build /bursar/target/release/bursar /usr/local/bin/bursar
