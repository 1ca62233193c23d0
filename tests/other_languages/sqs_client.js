// A client of SQS in JavaScript, by AWS's SDK unchanged: node sqs_client.js ENDPOINT, in a folder with @aws-sdk/client-sqs.
// The SDK compares the MD5 of each body and sends its requests to the URL of the queue.  Prints what it found as JSON.
"use strict";

const {
  ChangeMessageVisibilityCommand, CreateQueueCommand, DeleteMessageBatchCommand, DeleteMessageCommand,
  GetQueueAttributesCommand, GetQueueUrlCommand, ReceiveMessageCommand, SendMessageBatchCommand, SendMessageCommand,
  SQSClient,
} = require(require.resolve("@aws-sdk/client-sqs", { paths: [process.cwd()] }));

async function main(endpoint) {
  const client = new SQSClient({
    endpoint, region: "eu-west-1", credentials: { accessKeyId: "any", secretAccessKey: "any" }, maxAttempts: 1,
  });
  const found = {};
  const { QueueUrl } = await client.send(new CreateQueueCommand({
    QueueName: "javascript.fifo", Attributes: { FifoQueue: "true", ContentBasedDeduplication: "true" },
  }));
  found.url = (await client.send(new GetQueueUrlCommand({ QueueName: "javascript.fifo" }))).QueueUrl === QueueUrl;
  const attributes = {
    colour: { DataType: "String", StringValue: "grün" }, raw: { DataType: "Binary", BinaryValue: Uint8Array.of(0, 255) },
  };
  for (const body of ["one", "two", "one"]) {
    await client.send(new SendMessageCommand({
      QueueUrl, MessageBody: body, MessageGroupId: "g", MessageAttributes: attributes,
    }));
  }
  const receive = async () => (await client.send(new ReceiveMessageCommand({
    QueueUrl, WaitTimeSeconds: 1, MessageAttributeNames: ["All"], MessageSystemAttributeNames: ["All"],
  }))).Messages ?? [];
  const [first] = await receive();
  found.first = [first.Body, first.MessageAttributes.colour.StringValue, [...first.MessageAttributes.raw.BinaryValue]];
  found.waits = (await receive()).length;
  await client.send(new ChangeMessageVisibilityCommand({
    QueueUrl, ReceiptHandle: first.ReceiptHandle, VisibilityTimeout: 0,
  }));
  const [again] = await receive();
  found.again = [again.Body, again.Attributes.ApproximateReceiveCount];
  await client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: again.ReceiptHandle }));
  found.sent = (await client.send(new SendMessageBatchCommand({
    QueueUrl, Entries: [{ Id: "a", MessageBody: "three", MessageGroupId: "h" }, { Id: "b", MessageBody: "four" }],
  })));
  found.sent = [found.sent.Successful.map((one) => one.Id), found.sent.Failed.map((one) => one.Code)];
  const rest = [...await receive(), ...await receive()];
  found.rest = rest.map((one) => one.Body).sort();
  await client.send(new DeleteMessageBatchCommand({
    QueueUrl, Entries: rest.map((one, n) => ({ Id: String(n), ReceiptHandle: one.ReceiptHandle })),
  }));
  found.left = (await client.send(new GetQueueAttributesCommand({
    QueueUrl, AttributeNames: ["ApproximateNumberOfMessages", "FifoQueue"],
  }))).Attributes;
  try {
    await client.send(new GetQueueUrlCommand({ QueueName: "nowhere" }));
  } catch (error) {
    found.error = error.name;
  }
  console.log(JSON.stringify(found));
}

main(process.argv[2]).catch((error) => {
  console.error(error);
  process.exit(1);
});
