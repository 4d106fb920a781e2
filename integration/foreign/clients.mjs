// The clients under test behind one face: list, call, read and a record of
// what each of them complained about. The SDKs differ in where a request's
// options go, and in how the protocol's era is chosen.
import net from "node:net";

const info = { name: "foreign", version: "1" };

// SocketTransport speaks JSON lines over a Unix socket with an SDK's own reader
// and writer of lines.
class SocketTransport {
  constructor(path, ReadBuffer, serializeMessage) {
    this.path = path;
    this.serialize = serializeMessage;
    this.buffer = new ReadBuffer();
  }

  start() {
    return new Promise((resolve, reject) => {
      this.socket = net.createConnection(this.path, resolve);
      this.socket.on("error", (err) => {
        reject(err);
        this.onerror?.(err);
      });
      this.socket.on("close", () => this.onclose?.());
      this.socket.on("data", (chunk) => this.received(chunk));
    });
  }

  received(chunk) {
    this.buffer.append(chunk);
    for (;;) {
      let message;
      try {
        message = this.buffer.readMessage();
      } catch (err) {
        this.onerror?.(err);
        continue; // the line is gone, the next may be good
      }
      if (message === null) return;
      this.onmessage?.(message);
    }
  }

  send(message) {
    return new Promise((resolve, reject) => {
      this.socket.write(this.serialize(message), (err) => (err ? reject(err) : resolve()));
    });
  }

  async close() {
    this.socket?.end();
  }
}

// bridge is how a client launches the program. The SDKs pass on only what is
// named here and a few variables of their own choice.
function bridge(env) {
  const names = ["TMUX_MCPD_LISTEN", "TMUX_MCPD_TMUX_SOCKET_PATH", "TMUX_MCPD_TMUX_BIN", "GORACE"];
  const passed = names.filter((name) => env[name] !== undefined).map((name) => [name, env[name]]);
  return { command: env.TMUX_MCPD, args: ["stdio", "--no-start"], env: Object.fromEntries(passed), stderr: "inherit" };
}

async function sdk1(way, env) {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
  const { ReadBuffer, serializeMessage } = await import("@modelcontextprotocol/sdk/shared/stdio.js");
  const { UriTemplate } = await import("@modelcontextprotocol/sdk/shared/uriTemplate.js");
  const { ResourceUpdatedNotificationSchema } = await import("@modelcontextprotocol/sdk/types.js");
  const client = new Client(info);
  const transport =
    way === "stdio"
      ? new StdioClientTransport(bridge(env))
      : new SocketTransport(env.TMUX_MCPD_LISTEN, ReadBuffer, serializeMessage);
  return {
    client,
    transport,
    UriTemplate,
    // Its transports are told the version, the client does not keep it.
    subscribe: (uri, told) => {
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, told);
      return subscribe(client, uri);
    },
    version: () => client.transport?.protocolVersion ?? transport.negotiated,
    call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
  };
}

// subscribe subscribes in the way of before 2026-07-28, and gives the way to end it.
async function subscribe(client, uri) {
  await client.subscribeResource({ uri });
  return () => client.unsubscribeResource({ uri });
}

async function sdk2(way, env, mode) {
  const { Client, ReadBuffer, serializeMessage, UriTemplate } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const client = new Client(info, { versionNegotiation: { mode } });
  const transport =
    way === "stdio"
      ? new StdioClientTransport(bridge(env))
      : new SocketTransport(env.TMUX_MCPD_LISTEN, ReadBuffer, serializeMessage);
  return {
    client,
    transport,
    UriTemplate,
    subscribe: async (uri, told) => {
      client.setNotificationHandler("notifications/resources/updated", told);
      if (client.getNegotiatedProtocolVersion() < "2026") return subscribe(client, uri);
      const stream = await client.listen({ resourceSubscriptions: [uri] });
      return () => stream.close();
    },
    version: () => client.getNegotiatedProtocolVersion(),
    call: (name, args, options) => client.callTool({ name, arguments: args }, options),
  };
}

// connect makes a client of a kind, connected in a way (stdio or socket).
export async function connect(kind, way, env) {
  const makers = {
    "sdk1": () => sdk1(way, env),
    "sdk2-2025": () => sdk2(way, env, "legacy"),
    "sdk2-2026": () => sdk2(way, env, "auto"),
  };
  const face = await makers[kind]();
  face.complaints = [];
  face.client.onerror = (err) => face.complaints.push(err);
  face.transport.setProtocolVersion = (version) => (face.transport.negotiated = version);
  await face.client.connect(face.transport);
  return face;
}
