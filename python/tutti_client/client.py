"""Client: predictions by the process that owns the device."""

import concurrent.futures
import numbers
import os
import threading
import time

from .connection import Connection, RemoteError
from .region import TENSOR, Gone, aligned

LONGEST = 1e9  # seconds; a deadline has 64 bits of nanoseconds


class PredictionFuture(concurrent.futures.Future):
    """Of a request. cancel() takes it back: where it is still queued it is never computed."""

    connection = waiting = None

    def cancel(self):
        if not super().cancel():
            return False
        connection, waiting = self.connection, self.waiting
        if connection is not None:
            with connection.lock:
                if not waiting.abandoned and connection.under_way.get(waiting.slot) is waiting and not connection.closed:
                    connection.cancel(waiting)
        return True


class Client:
    """Connects on first use. slots: requests under way at once; slot_bytes: room for the inputs and outputs of one, which grows as needed."""

    def __init__(self, path, model=None, slots=8, slot_bytes=1 << 16, patience=30.0):
        self.path, self.default_model, self.slots, self.slot_bytes, self.patience = os.fspath(path), model, slots, slot_bytes, patience
        self.connection, self.process, self.connecting = None, 0, threading.Lock()

    def __getstate__(self):
        return self.path, self.default_model, self.slots, self.slot_bytes, self.patience

    def __setstate__(self, state):
        self.__init__(*state)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def connected(self, slot_bytes=0):
        """A connection of this process with slots of at least so many bytes."""
        connection = self.connection
        if connection is not None and self.process == os.getpid() and connection.slot_bytes >= slot_bytes and not connection.closed:
            return connection
        if connection is not None and self.process != os.getpid():  # forked: it is the parent's, and so are its locks
            connection.control.close()
            connection.region.close()
            self.connecting, self.connection = threading.Lock(), None
        with self.connecting:
            connection = self.connection
            if connection is None or connection.closed or connection.slot_bytes < slot_bytes:
                room = self.slot_bytes
                while room < slot_bytes:
                    room *= 2
                # One that is too small goes when the last request in it is answered: other threads may be about to use it.
                self.connection, self.process = Connection(self.path, self.slots, room, self.patience), os.getpid()
                self.slot_bytes = room  # not what was refused: the next connection would be, too
            return self.connection

    def model(self, name=None, version=-1):
        """Names, dtypes and shapes of a model."""
        return self.described(name, version)[1]

    def described(self, name, version):
        """A connection, and the model as described there: handles are a connection's own."""
        connection = self.connected()
        if name is None:
            name = self.default_model
        if name is None:
            names = connection.names()
            if len(names) != 1:
                raise RemoteError("not_found", f"which model? There are {', '.join(names) or 'none'}; hint: model=")
            name = self.default_model = names[0]
        return connection, connection.model(name, version)

    def start(self, x, model, version, priority, timeout, future, room=0):
        if not isinstance(priority, numbers.Integral) or not -(2**31) <= priority < 2**31:
            raise RemoteError("bad_request", f"a priority is a whole number of 32 bits; got {priority!r}")
        if timeout is not None and (not isinstance(timeout, numbers.Real) or timeout != timeout):
            raise RemoteError("bad_request", f"a timeout is a number of seconds; got {timeout!r}")
        deadline = time.monotonic() + min(max(timeout, 0), LONGEST) if timeout is not None else 0
        connection, described = self.described(model, version)
        arrays = described.arrays(x)
        at = aligned(len(arrays) * TENSOR.size)
        for array in arrays:
            at = aligned(at + array.nbytes)
            if array.ndim < 1 or array.ndim > 8:
                raise RemoteError("bad_request", f"an array has 1 to 8 axes, the first of samples; got shape {array.shape}")
        needed = at + aligned(max(len(described.outputs), 1) * TENSOR.size) + max(described.output_bytes(arrays), 1024, room)
        if connection.slot_bytes < needed:
            connection = self.connected(needed)
            described = connection.model(described.name, version)
        try:
            with connection.lock:
                return connection, connection.submit(described, arrays, at, priority, deadline, future), deadline
        except Gone as error:
            connection.close(str(error))
            raise

    def predict(self, x, model=None, version=-1, priority=0, timeout=None):
        """The outputs for x, an array [samples, ...] (a list or a dict by name where there are several inputs): an array, or a list of them."""
        room = 0
        while True:
            connection, waiting, deadline = self.start(x, model, version, priority, timeout, None, room)
            try:
                with connection.lock:
                    try:
                        if waiting.answer is None:
                            connection.wait(lambda: waiting.answer is not None, deadline)
                    except BaseException:  # Ctrl-C too
                        if waiting.answer is None and not connection.closed:
                            connection.cancel(waiting)
                        else:
                            connection.release(waiting)
                        raise
                    try:
                        arrays = connection.result(waiting)
                    finally:
                        connection.release(waiting)
            except Gone as error:
                connection.close(str(error))
                raise
            except RemoteError as error:
                connection.models.clear()  # a newer version may be unlike the one that was described
                # Outputs whose extents only the data know may need more room than was guessed.
                if "larger slots" not in str(error) or room > 1 << 36:
                    raise
                room = max(4 * connection.slot_bytes, room * 4)
                continue
            finally:
                if connection.ended:
                    connection.tell_futures()
            return arrays[0] if len(arrays) == 1 else arrays

    def submit(self, x, model=None, version=-1, priority=0, timeout=None):
        """predict() as a concurrent.futures.Future; several may be under way."""
        future = PredictionFuture()
        connection, _, _ = self.start(x, model, version, priority, timeout, future)
        with connection.lock:
            if connection.reader is None:
                connection.reader = threading.Thread(target=connection.read_for_futures, daemon=True, name="tutti_client")
                connection.reader.start()
        return future

    def models(self):
        """Names of what is served."""
        return self.connected().names()

    def close(self):
        if self.connection is not None and self.process == os.getpid():
            self.connection.close()
        self.connection = None

    def __del__(self):
        if getattr(self, "connection", None) is not None:
            self.close()
