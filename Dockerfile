# Lowerset in an image of Debian 12, with the C compiler that it needs.
#
#   docker build -t lowerset .
#   docker run --rm -v "$PWD:/work" lowerset lowerset plan net.onnx --batch 8
#
# It has no entry point, so that CI jobs run shells in it (examples/ci).
FROM debian:12-slim AS build
COPY debian/control /src/debian/control
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get build-dep -y --no-install-recommends /src
COPY . /src
RUN cd /src && dpkg-buildpackage -b -us -uc && rm -f /lowerset-dbgsym_*.deb

FROM debian:12-slim
COPY --from=build /lowerset_*.deb /tmp/
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        /tmp/lowerset_*.deb \
    && rm -rf /tmp/lowerset_*.deb /var/lib/apt/lists/* \
    && lowerset --version
WORKDIR /work
CMD ["lowerset", "help"]
