// Serves Azure's blobs until its standard input ends, with one container, `tests`: it is made
// here, because only a signed request may. Arguments: where azurite is, the account, its key.
const crypto = require("crypto");
const http = require("http");
const path = require("path");

const [root, account, key] = process.argv.slice(1);
process.stdin.on("end", () => process.exit(0)).resume();
process.argv = [
  process.argv[0], "azurite", "--blobHost", "127.0.0.1", "--blobPort", "0", "--silent",
  "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry",
];

function makeContainer(port) {
  const headers = { "x-ms-date": new Date().toUTCString(), "x-ms-version": "2021-08-06" };
  const lines = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`);
  const resource = `/${account}/${account}/tests\nrestype:container`;
  const text = "PUT" + "\n".repeat(12) + lines.join("") + resource;
  const digest = crypto.createHmac("sha256", Buffer.from(key, "base64")).update(text, "utf8");
  headers.Authorization = `SharedKey ${account}:${digest.digest("base64")}`;
  headers["Content-Length"] = 0;
  const where = `/${account}/tests?restype=container`;
  const request = { host: "127.0.0.1", port, method: "PUT", path: where, headers };
  http.request(request, (answer) => {
    if (answer.statusCode !== 201) {
      console.error(`the container was not made: ${answer.statusCode}`);
      process.exit(1);
    }
    answer.resume();
    console.log("listening", port);
  }).end();
}

(async () => {
  const own = path.join(root, "node_modules/azurite/dist/src");
  const { BlobServerFactory } = require(path.join(own, "blob/BlobServerFactory"));
  const Environment = require(path.join(own, "blob/BlobEnvironment")).default;
  const { setExtentMemoryLimit } = require(path.join(own, "common/ConfigurationBase"));
  const server = await new BlobServerFactory().createServer();
  setExtentMemoryLimit(new Environment(), true);
  await server.start();
  makeContainer(Number(new URL(server.getHttpServerAddress()).port));
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
