# docker build -t weighbridge .                       the client: compares gateways that run, and makes reports
# docker run --rm -v "$PWD:/runs" weighbridge compare --hardware this-machine --layouts mine.yaml,other.yaml
#
# docker build --target lab -t weighbridge-lab .      also lab hosts: real Ceph and Swift on this machine
# docker run --rm --privileged -v weighbridge:/var/lib/weighbridge -v "$PWD:/runs" weighbridge-lab compare
#
# Give --build-arg VERSION=... to name the version: the image is built without git.

FROM debian:trixie-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
    cargo gcc libc6-dev python3 python3-venv rustc
WORKDIR /src
RUN python3 -m venv /opt/weighbridge
COPY requirements.lock ./
RUN /opt/weighbridge/bin/pip install --no-compile --require-hashes --requirement requirements.lock
COPY Cargo.lock Cargo.toml LICENSE MANIFEST.in README.md pyproject.toml ./
COPY docs/weighbridge.1 docs/
COPY common common
COPY drivers drivers
COPY gateways gateways
COPY results results
COPY suites suites
COPY topologies topologies
COPY weighbridge weighbridge
ARG VERSION
RUN SETUPTOOLS_SCM_PRETEND_VERSION="$VERSION" /opt/weighbridge/bin/pip install --no-build-isolation --no-deps .

FROM debian:trixie-slim AS python
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/weighbridge /opt/weighbridge
WORKDIR /runs
ENTRYPOINT ["/opt/weighbridge/bin/weighbridge"]

FROM python AS lab
RUN apt-get update && apt-get install -y --no-install-recommends \
    debian-archive-keyring distro-info-data gpg iproute2 mmdebstrap openssh-client runc util-linux xfsprogs \
    && rm -rf /var/lib/apt/lists/*

FROM python AS client
USER nobody
ENV HOME=/tmp
