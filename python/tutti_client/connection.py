"""A connection to the server: its models, the slots of its region, and the requests under way in them."""

import collections
import os
import threading
import time

import numpy as np

from .region import CANCEL, PREDICT, RESPONSE_TAIL, TENSOR, VERSION, WAITING, Control, Gone, Region, aligned

KINDS = ("none", "bad_request", "not_found", "not_ready", "queue_full", "deadline", "cancelled", "draining", "failed")
DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64")
BFLOAT16 = DTYPES.index("bfloat16")
ARRAYS = tuple(np.dtype("uint16" if name == "bfloat16" else name) for name in DTYPES)  # NumPy has no bfloat16: its bits here, float32 outside
SPIN, FOREIGN, NAP = 50e-6, 500e-6, 0.02


class RemoteError(Exception):
    """What the server says of a request that failed. `kind` is one of KINDS."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind

    def __reduce__(self):
        return type(self), (self.kind, str(self))


class RemoteTimeout(RemoteError, TimeoutError):
    """No answer before the deadline."""


def failure(number, text):
    kind = KINDS[number] if number < len(KINDS) else "failed"
    return (RemoteTimeout if kind == "deadline" else RemoteError)(kind, text)


def bfloat16_bits(array):
    """Rounded to the nearest, halves to even; NaN stays NaN."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = (bits + (0x7FFF + (bits >> 16 & 1))) >> 16
    return np.where(np.isnan(array), bits >> 16 | 0x40, rounded).astype(np.uint16)


class Model:
    """A model as the server describes it."""

    def __init__(self, said):
        self.handle, self.name, self.version = said["handle"], said["name"], said["version"]
        self.input_names = [one["name"] for one in said["inputs"]]
        self.output_names = [one["name"] for one in said["outputs"]]
        self.codes = [DTYPES.index(one["dtype"]) for one in said["inputs"]]
        self.dtypes = [ARRAYS[code] for code in self.codes]
        self.shapes = [one["shape"] for one in said["inputs"]]
        self.outputs = [(ARRAYS[DTYPES.index(one["dtype"])], one["shape"]) for one in said["outputs"]]

    def arrays(self, x):
        """The inputs in the model's order, of its dtypes, rows one after the other."""
        if isinstance(x, dict):
            if unknown := set(x) - set(self.input_names):
                raise RemoteError("bad_request", f"model '{self.name}' has no input {sorted(unknown)}; its inputs are {self.input_names}")
            if missing := set(self.input_names) - set(x):
                raise RemoteError("bad_request", f"model '{self.name}': input {sorted(missing)} is missing")
            x = [x[name] for name in self.input_names]
        elif not isinstance(x, (list, tuple)) or len(self.dtypes) == 1 and not (len(x) == 1 and np.ndim(x[0]) == len(self.shapes[0])):
            x = [x]  # rows as a list are one array too
        if len(x) != len(self.dtypes):
            raise RemoteError("bad_request", f"model '{self.name}' takes {len(self.dtypes)} inputs; got {len(x)}")
        return [self.array(one, code, dtype) for one, code, dtype in zip(x, self.codes, self.dtypes)]

    @staticmethod
    def array(one, code, dtype):
        if code == BFLOAT16:
            return bfloat16_bits(np.asarray(one, np.float32))
        return np.ascontiguousarray(one, dtype) if np.ndim(one) else np.asarray(one, dtype)

    def output_bytes(self, arrays):
        """At least so many, where the model says. What has open extents is guessed: as long as the inputs' longest, and four times that in all."""
        samples = arrays[0].shape[0] if arrays else 1
        open_extents = [given for array, shape in zip(arrays, self.shapes) for given, extent in zip(array.shape[1:], shape[1:]) if extent < 0]
        longest = max(open_extents, default=samples)
        total = 0
        for dtype, shape in self.outputs:
            elements = samples * (4 if -1 in shape[1:] else 1)
            for extent in shape[1:]:
                elements *= extent if extent >= 0 else longest
            total += aligned(elements * dtype.itemsize)
        return total


class Waiting:
    """A request under way, for the thread that waits for it or a Future."""

    __slots__ = ("tag", "slot", "at", "future", "answer", "abandoned")

    def __init__(self, tag, slot, at, future):
        self.tag, self.slot, self.at, self.future, self.answer, self.abandoned = tag, slot, at, future, None, False


class Connection:
    """One region: the slots that are free, and what is under way in the others."""

    def __init__(self, path, slots, slot_bytes, patience):
        self.control = Control(path, patience)
        try:
            said = self.control.ask({"hello": VERSION, "slots": slots, "slot_bytes": slot_bytes})
            if "error" in said:
                raise failure(said["kind"], said["error"])
            self.region = Region(self.control, said)
        except BaseException:
            self.control.close()
            raise
        self.slot_bytes = said["slot_bytes"]
        self.lock = threading.Lock()
        self.free = list(range(said["slots"]))[::-1]
        self.under_way = {}
        self.ended = collections.deque()  # futures with what becomes of them, told without the lock: their callbacks may come back here
        self.requests = self.responses = self.tags = self.sleepers = 0
        self.usual_wait, self.no_spin_until, self.spin_pause = 0.0, 0.0, 0.02
        self.models = {}
        self.reader = None
        self.closed = False

    def model(self, name, version):
        found = self.models.get((name, version))
        if found is None:
            with self.lock:
                said = self.control.ask({"model": name, "version": version})
            if "error" in said:
                raise failure(said["kind"], said["error"])
            found = self.models[name, version] = Model(said)
        return found

    def names(self):
        with self.lock:
            said = self.control.ask({"models": True})
        return list(dict.fromkeys(one["name"] for one in said["models"]))

    def submit(self, model, arrays, at, priority, deadline, future):
        """Writes a request; waits for a free slot. With the lock."""
        self.check_open()
        while not self.free:
            self.wait(lambda: self.free, deadline)
        slot = self.free.pop()
        region = self.region
        memory, base = region.memory, region.slot_at(slot)
        place = aligned(len(arrays) * TENSOR.size)
        for i, array in enumerate(arrays):
            shape = array.shape
            TENSOR.pack_into(memory, base + i * TENSOR.size, model.codes[i], len(shape), place, array.nbytes, 0, *shape, *(0,) * (8 - len(shape)))
            region.bytes[base + place : base + place + array.nbytes] = array.data.cast("B") if array.nbytes else b""
            place = aligned(place + array.nbytes)
        self.tags += 1
        waiting = Waiting(self.tags, slot, at, future)
        self.under_way[slot] = waiting
        if future is not None:
            future.connection, future.waiting = self, waiting
        number = self.requests
        self.requests = (number + 1) & 0xFFFFFFFF
        region.write_request(number, waiting.tag, PREDICT, slot, model.handle, len(arrays), priority, 0, at, int(deadline * 1e9) if deadline else 0)
        return waiting

    def check_open(self):
        """Another thread may have closed it since it was chosen, and its region is gone then. With the lock."""
        if self.closed:
            raise Gone(self.why)

    def take_responses(self):
        """What the server has written since. With the lock."""
        region = self.region
        written = region.words[RESPONSE_TAIL]
        if (written - self.responses) & 0xFFFFFFFF > region.slots:
            raise Gone("the region holds what the server did not write")
        while self.responses != written:
            tag, slot, failed, outputs, text_bytes, _, _ = region.response(self.responses)
            self.responses = (self.responses + 1) & 0xFFFFFFFF
            waiting = self.under_way.get(slot)
            if waiting is None or waiting.tag != tag:
                continue
            waiting.answer = failed, outputs, text_bytes
            if waiting.abandoned or waiting.future is not None:
                self.finish(waiting)

    def result(self, waiting):
        """The outputs, copied: the slot is for the next request."""
        self.check_open()
        failed, outputs, text_bytes = waiting.answer
        region = self.region
        base = region.slot_at(waiting.slot)
        at = base + waiting.at
        if failed:
            raise failure(failed, bytes(region.bytes[at : at + text_bytes]).decode(errors="replace"))
        arrays = []
        for i in range(outputs):
            entry = TENSOR.unpack_from(region.memory, at + i * TENSOR.size)
            place = base + entry[2]
            array = np.ndarray(entry[5 : 5 + entry[1]], ARRAYS[entry[0]], region.memory, place)
            arrays.append((array.astype(np.uint32) << 16).view(np.float32) if entry[0] == BFLOAT16 else array.copy())
        return arrays

    def release(self, waiting):
        del self.under_way[waiting.slot]
        self.free.append(waiting.slot)

    def finish(self, waiting):
        """Of a Future, or of what nobody waits for. With the lock."""
        if not waiting.abandoned:
            try:
                arrays = self.result(waiting)
                self.ended.append((waiting.future, arrays[0] if len(arrays) == 1 else arrays))
            except RemoteError as error:
                self.ended.append((waiting.future, error))
        self.release(waiting)

    def tell_futures(self):
        """Without the lock."""
        while self.ended:
            try:
                future, result = self.ended.popleft()
            except IndexError:
                return
            future.connection = None  # who keeps the future need not keep the region
            if not future.set_running_or_notify_cancel():
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    def wait(self, ready, deadline):
        """Until ready(); with the lock, which is let go of meanwhile."""
        self.check_open()
        region, words = self.region, self.region.words
        self.take_responses()
        if ready():
            return
        begun = now = time.monotonic()
        while self.usual_wait < SPIN and now - begun < SPIN and now >= self.no_spin_until:
            seen = self.responses
            self.lock.release()
            os.sched_yield()
            self.lock.acquire()
            last, now = now, time.monotonic()
            if now - last > FOREIGN:  # others need this core: who sleeps is woken before them, who yields stands behind them
                self.spin_pause = 0.02 if now - self.no_spin_until > 4 * self.spin_pause else min(2 * self.spin_pause, 0.2)
                self.no_spin_until = now + self.spin_pause
            if self.closed:
                break
            if words[RESPONSE_TAIL] != seen:
                self.take_responses()
                if ready():
                    break
        while not ready():
            self.check_open()
            now = time.monotonic()
            if deadline and now >= deadline:
                raise RemoteTimeout("deadline", "no answer before the deadline")
            seen = self.responses
            self.sleepers += 1
            words[WAITING] = self.sleepers
            self.lock.release()
            region.sleep(seen, min(NAP, deadline - now) if deadline else NAP)
            self.lock.acquire()
            self.sleepers -= 1
            words[WAITING] = self.sleepers
            if words[RESPONSE_TAIL] == seen:  # long: is the server there, and does it know?
                if self.control.is_gone():
                    raise Gone("the server is gone")
                region.ring()
            self.take_responses()
        self.usual_wait = (7 * self.usual_wait + min(time.monotonic() - begun, 4 * SPIN)) / 8
        if self.requests % 16 == 0:  # to be woken may itself take longer than what was waited for: tried again now and then
            self.usual_wait = min(self.usual_wait, 0.75 * SPIN)

    def cancel(self, waiting):
        """Asks not to compute it; what comes of it nobody wants. With the lock."""
        waiting.abandoned = True
        number = self.requests
        self.requests = (number + 1) & 0xFFFFFFFF
        self.region.write_request(number, waiting.tag, CANCEL, waiting.slot, 0, 0, 0, 0, 0, 0)

    def read_for_futures(self):
        """On a thread of its own, while there are any."""
        while True:
            gone = None
            with self.lock:
                try:
                    before = self.responses
                    if any(waiting.future is not None for waiting in self.under_way.values()):
                        self.wait(lambda: self.responses != before, None)
                except Gone as error:
                    gone = error
                    self.fail_futures(error)
                ended = not self.ended and not any(waiting.future is not None for waiting in self.under_way.values())
                if ended:
                    self.reader = None
            if gone is not None:
                self.close(str(gone))  # who asks next connects again
            if ended:
                return
            self.tell_futures()

    def fail_futures(self, error):
        for waiting in list(self.under_way.values()):
            if waiting.future is not None:
                if not waiting.abandoned:
                    self.ended.append((waiting.future, error))
                self.release(waiting)

    def close(self, why="the client is closed"):
        with self.lock:
            if self.closed:
                return
            self.closed, self.why = True, why
            self.control.close()
            self.fail_futures(Gone(why))
            if not self.sleepers:
                self.region.close()
        self.tell_futures()
