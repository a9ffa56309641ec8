// A kernel in a process of its own, with one client on standard input and output. Run by path.
import { openKernel } from "@cookie-agent/kernel";
import { createLineTransport } from "@cookie-agent/sdk/rpc";

const kernel = await openKernel(JSON.parse(process.env.COOKIE_TEST_KERNEL));
const near = kernel.connect();
const far = createLineTransport({
  input: process.stdin,
  output: process.stdout,
  onBadLine: () => process.exit(70),
});
pass(near, far);
pass(far, near);
far.reader.onClose(() => void kernel.close().then(() => process.exit(0)));

function pass(from, to) {
  from.reader.listen((frame) => {
    from.flow?.dispatched(frame);
    from.flow?.settled(frame);
    void to.writer.write(frame);
  });
}
