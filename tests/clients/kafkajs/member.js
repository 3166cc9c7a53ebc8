// A member of a group with KafkaJS: node member.js BOOTSTRAP GROUP TOPIC CLIENT_ID
// Commands on standard input ("commit OFFSET", and its end to leave), one JSON object a line on standard output.
const { Kafka, logLevel } = require("kafkajs");
const { createInterface } = require("node:readline/promises");

async function main([bootstrap, groupId, topic, clientId]) {
  const kafka = new Kafka({ clientId, brokers: [bootstrap], logLevel: logLevel.ERROR });
  const consumer = kafka.consumer({ groupId, heartbeatInterval: 200, maxWaitTimeInMs: 200 });
  let owned = [];
  const report = (event) => console.log(JSON.stringify({ [event]: owned }));
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    owned = [...(payload.memberAssignment[topic] ?? [])].sort((a, b) => a - b);
    report("assigned");
  });
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    console.error(payload.error);
    process.exit(1);
  });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({ autoCommit: false, eachMessage: async () => {} });
  for await (const line of createInterface({ input: process.stdin })) {
    const [command, offset] = line.split(" ");
    if (command !== "commit") throw new Error(`unknown command "${line}": expected "commit OFFSET"`);
    await consumer.commitOffsets(
      owned.map((partition) => ({ topic, partition, offset: String(Number(offset) + partition) })),
    );
    report("committed");
  }
  await consumer.disconnect();
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
