"""A region of memory that is shared with the server: docs/serving.md has its layout. Words of it are read and written here, and slept on."""

import contextlib
import ctypes
import json
import mmap
import os
import platform
import select
import socket
import struct
import threading

VERSION = 1
ALIGNMENT = 64
MOST_MESSAGE = 1 << 16
# In 32-bit words of the header.
REQUEST_TAIL, RESPONSE_TAIL, WAITING, SERVER_ASLEEP = 16, 32, 48, 64
HEADER_BYTES = 320
REQUEST = struct.Struct("<QIIIIiIQQ16x")  # tag, operation, slot, model, inputs, priority, -, outputs_at, deadline_ns
RESPONSE = struct.Struct("<QIIIIQQ24x")  # tag, slot, failure, outputs, text_bytes, queue_ns, compute_ns
TENSOR = struct.Struct("<IIQQQ8q")  # dtype, rank, at, bytes, -, extents
PREDICT, CANCEL = 1, 2

FUTEX_WAIT = 0
FUTEX = {"x86_64": 202, "aarch64": 98, "i386": 240, "i686": 240, "armv7l": 240, "riscv64": 98}.get(platform.machine())


class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def aligned(count):
    return (count + ALIGNMENT - 1) & -ALIGNMENT


class Gone(ConnectionError):
    """The server hung up, or never was there."""


class Control:
    """Messages over the socket: a length of four bytes, then JSON."""

    def __init__(self, path, patience):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(patience)
        self.buffer = b""
        self.descriptors = []
        try:
            self.socket.connect(path)
        except OSError as error:
            self.socket.close()
            raise Gone(f"nobody serves at '{path}': {error.strerror or error}; hint: tutti serve MODEL --socket {path}") from None
        self.poller = select.poll()
        self.poller.register(self.socket, select.POLLIN)

    def ask(self, message):
        text = json.dumps(message).encode()
        try:
            # A server that refuses says so and hangs up, maybe before this is sent: what it said is there to be read all the same.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.socket.sendall(struct.pack("<I", len(text)) + text)
            while len(self.buffer) < 4 or len(self.buffer) < 4 + struct.unpack_from("<I", self.buffer)[0]:
                part, descriptors, _, _ = socket.recv_fds(self.socket, 65536, 4)
                self.descriptors += descriptors
                if not part:
                    raise Gone("the server hung up")
                self.buffer += part
        except OSError as error:
            if isinstance(error, Gone):
                raise
            raise Gone(f"the server does not answer: {error}") from None
        length = struct.unpack_from("<I", self.buffer)[0]
        answer, self.buffer = self.buffer[4 : 4 + length], self.buffer[4 + length :]
        return json.loads(answer)

    def is_gone(self):
        """Whether the server hung up; what it said last is lost then."""
        try:
            return bool(self.poller.poll(0)) and self.socket.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True

    def close(self):
        self.socket.close()


class Region:
    event = None  # of an open one

    def __init__(self, control, said):
        if len(control.descriptors) != 2:
            raise Gone(f"the server handed over {len(control.descriptors)} descriptors, not 2")
        memory, event = control.descriptors
        control.descriptors = []
        self.slots, self.slot_bytes = said["slots"], said["slot_bytes"]
        try:
            self.memory = mmap.mmap(memory, said["bytes"])
        except OSError:
            os.close(event)
            raise
        finally:
            os.close(memory)
        self.event = event
        self.bytes = memoryview(self.memory)
        self.words = self.bytes[:HEADER_BYTES].cast("I")
        self.requests_at, self.responses_at, self.slots_at = said["requests_at"], said["responses_at"], said["slots_at"]
        self.response_word = ctypes.c_uint32.from_buffer(self.memory, 4 * RESPONSE_TAIL)
        self.response_address = ctypes.addressof(self.response_word)
        self.fence = threading.Lock()
        self.syscall = ctypes.CDLL(None, use_errno=True).syscall
        self.syscall.argtypes = [ctypes.c_long, ctypes.c_void_p, ctypes.c_long, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]

    def slot_at(self, slot):
        return self.slots_at + slot * self.slot_bytes

    def write_request(self, number, *fields):
        REQUEST.pack_into(self.memory, self.requests_at + number % (2 * self.slots) * REQUEST.size, *fields)
        words, fence = self.words, self.fence
        with fence:  # taking a lock orders what is written before it and after it, for the server too
            pass
        words[REQUEST_TAIL] = (number + 1) & 0xFFFFFFFF
        with fence:
            pass
        if words[SERVER_ASLEEP]:
            self.ring()

    def ring(self):
        os.write(self.event, b"\1\0\0\0\0\0\0\0")

    def response(self, number):
        return RESPONSE.unpack_from(self.memory, self.responses_at + number % self.slots * RESPONSE.size)

    def sleep(self, seen, seconds):
        """Until there are other than `seen` responses, at most so long. WAITING is set by the caller, before."""
        timeout = Timespec(int(seconds), int(seconds % 1 * 1e9))
        self.syscall(FUTEX, self.response_address, FUTEX_WAIT, seen, ctypes.addressof(timeout), None, 0)

    def close(self):
        if self.event is None:
            return
        os.close(self.event)
        self.event = None
        self.words.release()
        self.bytes.release()
        del self.response_word
        try:
            self.memory.close()
        except BufferError:
            pass  # an array of it lives on; it goes with that

    def __del__(self):
        self.close()
