# tmux-mcpd with a tmux server of its own, for agents that should work in a
# container. Build and run:
#
#   docker build -t tmux-mcpd .
#   docker run -d --name tmux-mcpd tmux-mcpd
#   docker exec -i tmux-mcpd tmux-mcpd stdio        # what an MCP client launches
#
# Or share the socket with the host: -v DIR:/run/tmux-mcpd, where DIR belongs to
# uid 1000 with mode 0700, and on the host: tmux-mcpd stdio --listen DIR/mcpd.sock
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/tmux-mcpd ./cmd/tmux-mcpd

FROM debian:bookworm-slim
# tini reaps what shells in panes leave behind and passes SIGTERM on. C.UTF-8
# comes with the C library: no locales package is needed.
RUN apt-get update \
	&& apt-get install -y --no-install-recommends tmux tini procps less ca-certificates \
	&& rm -rf /var/lib/apt/lists/* \
	&& useradd --uid 1000 --create-home --shell /bin/bash agent \
	&& install -d -o agent -g agent -m 0700 /run/tmux-mcpd
COPY --from=build /out/tmux-mcpd /usr/local/bin/tmux-mcpd

USER agent
WORKDIR /home/agent
# The same for every process in the container, so that "tmux-mcpd stdio" and
# "tmux-mcpd call" by docker exec meet the daemon.
ENV LANG=C.UTF-8 \
	LC_ALL=C.UTF-8 \
	SHELL=/bin/bash \
	TMUX_MCPD_LISTEN=/run/tmux-mcpd/mcpd.sock \
	TMUX_MCPD_START=dedicated
VOLUME /run/tmux-mcpd
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s CMD ["tmux-mcpd", "status"]
ENTRYPOINT ["tini", "--"]
CMD ["tmux-mcpd", "serve"]
