// The page's side of the worker, one for all explorers of a page: starts it when it is wanted,
// hands it the newest question of each explorer, and starts another when it has died. Knows
// nothing of the page.

const PATIENCE = 5000; // ms without an answer after which a running worker counts as dead

/**
 * What the worker is to do, for the one that waits for the answer.
 * @typedef {object} Task
 * @property {object} message
 * @property {Transferable[]} transfer  parts of the message that the worker is to own
 * @property {number} patience          ms
 * @property {boolean} repeat           whether another worker may be asked the same
 *
 * @typedef {object} Events
 * @property {(share: number) => void} onLoading           0 to 1
 * @property {() => void} onReady                          of each worker: it knows nothing yet
 * @property {(why: string) => void} onFailed              until the next question
 * @property {(name: string, html: string) => void} onAnswer
 */

export class Client {
  /**
   * @param {(failures: number) => Worker} makeWorker
   * @param {boolean} snapshot  whether there is one to start from
   * @param {Events} events
   */
  constructor(makeWorker, snapshot, events) {
    Object.assign(this, { makeWorker, snapshot, events, plain: !snapshot });
    /** @type {Map<string, Task>} the newest tasks that are not begun yet, by who waits for them */
    this.waiting = new Map();
    /** @type {"off"|"starting"|"idle"|"busy"} */
    this.state = "off";
    this.failures = 0;
  }

  /**
   * Ask for an explorer's result; an older question of the same explorer is dropped.
   * @param {string} name
   * @param {object} values
   * @param {Partial<Task>} how
   */
  ask(name, values, how = {}) {
    this.put(name, { ...how, message: { ask: { name, values } } });
  }

  /**
   * Give this worker, and no other, a file that questions will need.
   * @param {string} name  who waits until it is taken
   * @param {ArrayBuffer} file
   * @param {Partial<Task>} how
   */
  give(name, file, how = {}) {
    this.put(name, { ...how, message: { give: { file } }, transfer: [file], repeat: false });
  }

  /** @param {string} name @param {Partial<Task>} task */
  put(name, task) {
    this.waiting.delete(name);
    this.waiting.set(name, { transfer: [], patience: PATIENCE, repeat: true, ...task });
    this.wake();
    this.next();
  }

  /** Start the worker if there is none. */
  wake() {
    if (this.state !== "off") return;
    this.state = "starting";
    this.worker = this.makeWorker(this.failures);
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.fail("its script could not be loaded");
    };
    this.worker.postMessage({ begin: { plain: this.plain, again: this.failures > 0 } });
  }

  /** @param {{loaded?: number, ready?: boolean, html?: string, failed?: string}} data */
  hear(data) {
    if (data.loaded !== undefined) this.events.onLoading(data.loaded);
    if (data.failed !== undefined) this.fail(data.failed);
    if (data.ready) {
      this.state = "idle";
      this.events.onReady();
      this.next();
    }
    if (data.html !== undefined) {
      clearTimeout(this.timer);
      this.state = "idle";
      this.failures = 0;
      // The next question first: the worker computes it while the page shows this answer.
      const name = this.name;
      this.next();
      this.events.onAnswer(name, data.html);
    }
  }

  /** Whether an answer for this name is still to come. */
  expects(name) {
    return this.waiting.has(name) || (this.state === "busy" && this.name === name);
  }

  next() {
    if (this.state !== "idle" || !this.waiting.size) return;
    [[this.name, this.task]] = this.waiting; // the one that has waited longest
    this.waiting.delete(this.name);
    this.state = "busy";
    this.worker.postMessage(this.task.message, this.task.transfer);
    this.timer = setTimeout(() => this.fail("it gave no answer"), this.task.patience);
  }

  /**
   * End this worker, and begin another where that is likely to help: a start without the snapshot
   * after one with it; after a worker that died over a question, one that is asked it once more.
   * Else wait for the reader's next move.
   */
  fail(why) {
    clearTimeout(this.timer);
    this.worker.terminate();
    const wasStarting = this.state === "starting";
    this.state = "off";
    this.failures += 1;
    const plainer = wasStarting && !this.plain;
    const oncemore = !wasStarting && this.failures === 1 && this.task.repeat;
    this.plain = plainer || !this.snapshot;
    if (oncemore && !this.waiting.has(this.name)) this.waiting.set(this.name, this.task);
    if (plainer || oncemore) this.wake();
    else this.events.onFailed(why);
  }
}
