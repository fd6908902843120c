// A client on @grpc/grpc-js: see test_clients.py beside this folder for what it does and prints.
// node main.js MODULES PROTOS HOST:PORT
const { createRequire } = require("module");
const [modules, protos, address] = process.argv.slice(2);
const load = createRequire(modules + "/");
const grpc = load("@grpc/grpc-js");
const { loadSync } = load("@grpc/proto-loader");

const options = { keepCase: true, longs: String, enums: Number, defaults: true, includeDirs: [protos] };
const { StockService } = grpc.loadPackageDefinition(loadSync("stock_service/v1/stock.proto", options)).stock_service.v1;
const client = new StockService(address, grpc.credentials.createInsecure());

function call(method, request) {
  const deadline = Date.now() + 10_000;
  return new Promise((resolve, reject) => {
    client[method](request, { deadline }, (error, reply) => (error ? reject(error) : resolve(reply)));
  });
}

async function lookup(name) {
  const reply = await call("Lookup", { name });
  console.log("lookup", reply.status, reply.price_cents, reply.volume, reply.sequence);
}

async function trade(name, quantity, request_id) {
  try {
    const reply = await call("Trade", { name, quantity, side: 1, request_id });
    console.log("trade", reply.status, reply.volume, reply.sequence);
  } catch (error) {
    console.log("fault", error.code);
  }
}

async function missing() {
  const same = (bytes) => bytes;
  return new Promise((resolve) => {
    const path = "/stock_service.v1.StockService/Missing";
    client.makeUnaryRequest(path, same, same, Buffer.alloc(0), (error) => resolve(error.code));
  });
}

async function main() {
  await lookup("MenhirCo");
  await trade("MenhirCo", 12, "once");
  await trade("MenhirCo", 12, "once");
  await trade("MenhirCo", 13, "once");
  const updated = await call("Update", { name: "MenhirCo", price_cents: 9999 });
  console.log("update", updated.status, updated.sequence);
  await lookup("MenhirCo");
  await lookup("no such stock");
  console.log("fault", await missing());
  client.close();
}

main();
